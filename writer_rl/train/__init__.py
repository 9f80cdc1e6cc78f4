"""What every training needs: DeepSpeed, ranks, optimizers, checkpoints, data, engines."""
