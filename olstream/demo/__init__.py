"""The demo: a real data stream, an embedded broker, the service itself as a process, and a screen to watch it."""
