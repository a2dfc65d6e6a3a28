"""Distillation: a student learns a teacher's vectors, from parallel text (to learn languages) or from any text (to be small).

The objective itself is `train.objectives.distillation`; here is what it needs: the teacher's vectors, computed once and kept on disk, the
recipe that `munjang distill` runs, and the report before and after.
"""
