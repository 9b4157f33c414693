"""What a turn of the loop costs, against a loop that does nothing but move the same bytes."""
