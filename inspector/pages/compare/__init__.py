"""Two to four requests' histories on one axis: recordings, and replays of them under any settings."""
