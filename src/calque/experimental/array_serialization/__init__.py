"""Arrays written to storage by many processes: the interface that libraries implement."""
