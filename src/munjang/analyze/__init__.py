"""What vectors tell about a collection: pairs, matches, and later clusters, keywords and topics."""
