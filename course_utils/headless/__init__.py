"""Run the lessons without a browser: `python -m course_utils.headless`.

papermill over the notebooks: progress while they run, limits on time, no process left
behind, and runs/<stamp>/ with each executed notebook, its HTML and results.json. Lessons
are known here only as files, and JAX is never imported: it belongs to their kernels.
"""
