"""Files that people write (PDF, Office, HTML, HWP …) → sections of text that know where they stood (extra `documents`)."""
