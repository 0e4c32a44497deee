"""What a question is answered with: frozen records that the calculator fills in and `rendering/` shows."""
