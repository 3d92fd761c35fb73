"""What AWS does by itself: CloudFormation works on stacks, SQS counts messages, Step Functions runs executions."""
