"""Results: frozen records that the calculator fills in and `rendering/` shows."""
