"""Config -> a worker at work: the only place that builds things.

    lock -> broker and topics -> producer (ends what the last run left open) -> recover -> join -> loop

A lost assignment, or a transaction that turned out not to be ours, goes back to the producer's
step: models dropped, recovered, joined anew. A configuration that is read again is taken between two
steps of the loop, as a whole, or refused.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Final

import confluent_kafka
from confluent_kafka.admin import AdminClient

from olstream import logs
from olstream.config import Config
from olstream.errors import KafkaError, OlstreamError, StateError
from olstream.health import Health
from olstream.inert import inert
from olstream.io import http, kafka_admin, tls
from olstream.io.client import Errors, call_for_rebalance
from olstream.io.clock import SystemClock
from olstream.io.disk import Store, slot_directory, unwritable
from olstream.io.kafka_guard import TopicGuard
from olstream.io.kafka_read import KafkaInputs, KafkaJournal
from olstream.io.kafka_source import KafkaSource
from olstream.io.outbox import NOBODY, Told
from olstream.io.plain import PlainSink
from olstream.io.starts import begin
from olstream.io.timed import TimedCheckpoints, TimedSink, TimedSource
from olstream.io.transactional import TransactionalSink
from olstream.io.writer import CheckpointWriter
from olstream.loop import Loop
from olstream.metrics import Metrics
from olstream.model import Model
from olstream.pairs import refuse_unequal
from olstream.pipeline import Pipeline
from olstream.ports import Lost
from olstream.recover import Recovered, Recovery, begun, checkpoint_of
from olstream.relearn import under
from olstream.reload import changes
from olstream.watch import Watch

log = logging.getLogger(__name__)

STOP_PATIENCE_S: Final = 5.0  # a call that waits may take as long again; orchestrators kill after 30 s


class App:
    """One worker: one slot of a group."""

    def __init__(
        self, config: Config, reread: Callable[[], Config] | None = None, asked: SimpleQueue[None] | None = None
    ) -> None:
        """`asked` gets an item from whoever wants the configuration taken anew, and `reread` reads it then.

        A queue, for a signal handler may interrupt us while we hold the lock of an event, and would wait for ever.
        """
        config.needs_kafka()
        self.config = config
        self.reread = reread or (lambda: config)
        self.asked: SimpleQueue[None] = asked or SimpleQueue()
        self.run_id = uuid.uuid4().hex
        self.clock = SystemClock()
        self.health = Health(monotonic=self.clock.now_s, now=self.clock.epoch_s)
        self.metrics = Metrics(config, self.health, librdkafka=confluent_kafka.libversion()[0], now=self.clock.epoch_s)
        self.watch = Watch(self.metrics, self.health, lambda: self.errors.accepted())
        self.errors = Errors(self.watch.client_error, explained=partial(tls.explained, config))
        self.store = Store(
            slot_directory(config.checkpoint.path, config.group, config.slot), keep=config.checkpoint.keep
        )
        self.topics: dict[str, kafka_admin.TopicFacts] = {}
        self._stop = Event()
        self._told_s: float | None = None  # when a wait first saw that it should stop

    def run(self, stop: Event) -> None:
        """Work until `stop` is set; raises an OlstreamError where somebody has to act."""
        self._stop = stop
        with ExitStack() as stack:
            self.store.open()
            stack.callback(self.store.close)
            server = http.serve(self.config, self.metrics, self.health)
            stack.callback(server.stop)
            log.info("group %s slot %d, metrics and status at %s", self.config.group, self.config.slot, server.url)
            self._warm_up(self.config)
            self.metrics.warm_up()
            admin = kafka_admin.admin(self.config, self.errors)
            journal = self._reach(admin)
            if journal is not None:
                stack.callback(self._guard(admin, journal).close)
            while journal is not None and not stop.is_set():
                try:
                    self._work(journal)
                    return
                except Lost as lost:
                    log.warning("dropping the models and recovering as at a start: %s", lost)
                    self.health.restoring("recovering after a lost assignment")
                    self.health.assigned(None)

    def _warm_up(self, config: Config) -> None:
        """Compile now: the first batch must not hold a transaction open for the compiler."""
        for name, learner in config.learners.items():
            self.watch.alive()
            Model(name, learner, config.monitor).warm_up()

    def _reach(self, admin: AdminClient) -> KafkaJournal | None:
        """Wait for the broker and the topics; None when told to stop meanwhile."""
        give_up_s = time.monotonic() + self.config.kafka_wait_s
        while not self._stop.is_set():
            self._alive()
            try:
                journal = self._look_for_topics(admin)
                self.health.broker(True)
                self.errors.accepted()
                return journal
            except KafkaError as error:
                why = str(error)
            if time.monotonic() > give_up_s:
                raise KafkaError(f"gave up after kafka_wait ({self.config.kafka_wait_s:g} s): {why}")
            self.health.broker(False, why)
            log.warning("waiting: %s", why, extra={"every_s": 10.0})
            self._stop.wait(min(1.0, max(0.05, give_up_s - time.monotonic())))
        return None

    def _look_for_topics(self, admin: AdminClient) -> KafkaJournal:
        """The journal, once all topics are there; KafkaError with what is missing so far."""
        config = self.config
        found = kafka_admin.cluster(admin)
        if found is None:
            raise KafkaError(f"no broker answers at {config.kafka['bootstrap.servers']}")
        wanted = [*config.input.topics, *self._outputs()]
        self.topics = kafka_admin.facts(admin, found, wanted)
        inputs = {topic: self.topics[topic].partitions for topic in config.input.topics if topic in self.topics}
        refuse_unequal(config, inputs)
        missing = [topic for topic in wanted if topic not in self.topics]
        if missing:
            raise KafkaError(kafka_admin.not_seen(admin, config, missing))
        journal = kafka_admin.ensure_journal(admin, config, max(inputs.values()))
        if journal is None:
            raise KafkaError(kafka_admin.no_topic([config.journal_topic]))
        self.topics[config.journal_topic] = journal
        return KafkaJournal(config, journal.partitions, self.errors, self._alive)

    def _outputs(self) -> list[str]:
        output = self.config.output
        return [topic for topic in (output.predictions, output.dead_letters, output.outcomes, output.shadows) if topic]

    def _guard(self, admin: AdminClient, journal: KafkaJournal) -> TopicGuard:
        facts = facts_of(self.config, self.run_id, journal, self.topics)
        guard = TopicGuard(self.config, admin, facts, self._outputs(), self.errors, self.health.topics)
        if any(facts["topic_ids"].values()):  # else the broker is too old, or an imitation
            guard.start()
        return guard

    def _work(self, journal: KafkaJournal) -> None:
        """One life as a member of the group, from an empty memory to told to stop, or Lost."""
        config, watch = self.config, self.watch
        with ExitStack() as stack:
            told = Told(self._alive, self.watch.outcome, self.metrics.produce_failed)
            sink = sink_of(config, self.run_id, journal, self.errors, told)
            stack.callback(sink.close)
            recovered = self._recover(journal, sink)
            pipeline = Pipeline(config, recovered.models, timed=watch.timed, offsets=recovered.position.offsets)
            writer = CheckpointWriter(
                config,
                self.store,
                recovered.facts,
                watch.checkpoint_written,
                self.metrics.checkpoint_failed,
            )
            stack.callback(writer.close)
            source = KafkaSource(
                config,
                journal,
                recovered.position.offsets,
                self.errors,
                on_change=watch.group_changed,
                on_statistics=lambda text: watch.statistics(text, source.next),
                on_gap=self.metrics.offsets_lost,
                in_doubt=recovered.in_doubt,
            )
            stack.callback(source.close)
            sink.group = source
            loop = Loop(
                config,
                pipeline,
                recovered.position,
                self.run_id,
                TimedSource(source, watch),
                TimedSink(sink, watch),
                TimedCheckpoints(writer, watch),
                self.clock,
                watch,
                self._inputs,
            )
            self.health.restored()
            if recovered.found != "new" and recovered.then.get("partitions") != recovered.facts["partitions"]:
                log.info("the inputs have other partitions than before: calling the group to share them out")
                Thread(target=call_for_rebalance, args=(config, self.errors), name="passer-by", daemon=True).start()
            try:
                loop.run(self._stop, lambda: self.reload(loop, writer.facts))
            except Lost:
                sink.abandon()
                raise

    def reload(self, loop: Loop, facts: Mapping[str, Any]) -> None:
        """Where somebody asked, take the configuration anew. To be called between two steps of the loop."""
        if self.asked.empty() or not loop.source.is_settled():
            return
        while not self.asked.empty():
            self.asked.get()
        try:
            loop.commit()
            self._take(loop, facts)
        except Lost:
            self.asked.put(None)  # once more, when the models are recovered
            raise
        except OSError as error:
            self._refuse(error)
            raise Lost("a checkpoint under the new configuration may be on the disk, or not") from error

    def _take(self, loop: Loop, facts: Mapping[str, Any]) -> None:
        """All of it or nothing, right after a commit. Wherever this dies, a start finds what it takes to go on."""
        known = loop.pipeline.models
        try:
            config = self.reread()
            told = changes(self.config, config)
            new, starts = begun(config, (name for name in config.learners if name not in known), begin)
            self._warm_up(config)
            models = under(config, {**known, **new})
        except (OlstreamError, OSError) as error:
            self._refuse(error)
            return
        if told:
            self._keep_removed(config, loop, facts)
            pipeline = Pipeline(config, models, timed=self.watch.timed, offsets=loop.position.offsets)
            loop.reconfigure(config, pipeline, starts)
            self.config, self.store.keep = config, config.checkpoint.keep
            self.metrics.reconfigure(config)
            logs.setup(config.log)
        self.metrics.reloaded("success")
        log.info("the configuration was read again: %s", ", ".join(told) or "nothing has changed")
        for sentence in inert(config) if told else ():
            log.warning(sentence)

    def _keep_removed(self, config: Config, loop: Loop, facts: Mapping[str, Any]) -> None:
        removed = {name: model for name, model in loop.pipeline.models.items() if name not in config.learners}
        if removed:
            log.warning("no longer configured, last state kept aside: %s", ", ".join(removed))
            self.store.keep_removed(checkpoint_of(self.config, removed, loop.position, facts))

    def _refuse(self, error: Exception) -> None:
        self.metrics.reloaded("failure")
        log.error("the configuration stays as it was: %s", error)

    def _alive(self) -> None:
        """Called by everything that waits for Kafka: the loop is not stuck. Refused, or told to stop, it gives up."""
        self.watch.alive()
        self.errors.raise_if_refused()
        if self._stop.is_set():
            self._told_s = self._told_s or self.clock.now_s()
            if self.clock.now_s() > self._told_s + STOP_PATIENCE_S:
                raise KafkaError(
                    "told to stop while Kafka does not answer: what was not committed is learnt and answered at the "
                    "next start"
                )

    def _inputs(self) -> KafkaInputs:
        return KafkaInputs(self.config, self.errors, self._alive, self.metrics.offsets_lost)

    def _recover(self, journal: KafkaJournal, sink: TransactionalSink | PlainSink) -> Recovered:
        inputs = self._inputs()
        recovery = Recovery(
            self.config,
            self.run_id,
            self.store,
            sink,
            journal,
            inputs,
            facts_of(self.config, self.run_id, journal, self.topics),
            begin,
            self.watch.replayed,
            self.watch.remaining,
        )
        try:
            recovered = recovery.recover()
        except StateError:
            self.metrics.restored("failed")
            raise
        except OSError as error:
            raise unwritable(self.store.directory, error) from error
        finally:
            inputs.close()
        self.watch.remaining(0)
        self.metrics.restored({"new": "fresh", "older checkpoint": "fell_back"}.get(recovered.found, "restored"))
        self.metrics.standings(recovered.models.values())
        log.info(
            "recovered from %s: seq %d, %d records learnt again",
            recovered.found,
            recovered.position.seq,
            recovered.replayed,
        )
        return recovered


def sink_of(
    config: Config, run: str, journal: KafkaJournal, errors: Errors, told: Told = NOBODY
) -> TransactionalSink | PlainSink:
    """Where this slot's records go; under exactly_once every earlier producer of the slot is fenced by it."""
    kind = TransactionalSink if config.guarantee == "exactly_once" else PlainSink
    return kind(config, run, journal, errors, told)


def facts_of(
    config: Config, run: str, journal: KafkaJournal, topics: Mapping[str, kafka_admin.TopicFacts]
) -> dict[str, Any]:
    """What a later start compares with, and what people want to know of a checkpoint."""
    inputs = {name: topics[name] for name in config.input.topics}
    return {
        "group": config.group,
        "slot": config.slot,
        "run": run,
        "guarantee": config.guarantee,
        "journal": {"topic": journal.topic, "partition": journal.partition, "partitions": journal.partitions},
        "partitions": {name: topic.partitions for name, topic in inputs.items()},
        "topic_ids": {name: topics[name].id for name in sorted([*inputs, journal.topic]) if name in topics},
    }
