"""What requests and answers look like, one file per dialect. The OpenAPI description is made from these."""
