"""The work of AWS itself: CloudFormation works on stacks, SQS counts messages, Step Functions runs executions."""
