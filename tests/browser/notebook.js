// What the tests ask of a notebook that is open in JupyterLab, through its own application object.
// lab_page.py puts it into the page before anything else.
window.course = {
  panel(path) {
    const widgets = [...window.jupyterapp.shell.widgets("main")];
    return widgets.find((widget) => widget.context?.path === path);
  },

  kernel(path) {
    return course.panel(path)?.sessionContext.session?.kernel;
  },

  kernelId(path) {
    return course.kernel(path).id;
  },

  // The cells that have code.
  codeCells(path) {
    return course
      .panel(path)
      .content.widgets.filter((cell) => cell.model.type === "code")
      .filter((cell) => cell.model.sharedModel.getSource().trim());
  },

  // What their prompts say, and what stands below them.
  cells(path) {
    return course.codeCells(path).map((cell) => ({
      source: cell.model.sharedModel.getSource(),
      count: cell.model.executionCount,
      running: cell.promptNode.textContent.includes("*"),
      outputs: cell.model.outputs.toJSON(),
    }));
  },

  errors(path) {
    const outputs = course.cells(path).flatMap((cell) => cell.outputs);
    return outputs.filter((output) => output.output_type === "error");
  },

  // Whether nothing more will come: every cell has run, or one has failed and stopped the rest.
  finished(path) {
    const cells = course.cells(path);
    const resting = !cells.some((cell) => cell.running) && course.kernel(path)?.status === "idle";
    const done = cells.every((cell) => cell.count !== null);
    return resting && (done || course.errors(path).length > 0);
  },

  // The words below a code cell, as they stand in the page.
  shown(path, number) {
    return course.codeCells(path)[number].node.querySelector(".jp-Cell-outputArea").innerText;
  },

  select(path, number) {
    const { content } = course.panel(path);
    content.activeCellIndex = content.widgets.indexOf(course.codeCells(path)[number]);
    content.mode = "command";
    content.activate();
  },

  // Whether the notebook in front reaches as far as the window does, but for the bars at its edges.
  fillsTheWindow() {
    const { right, bottom } = window.jupyterapp.shell.currentWidget.node.getBoundingClientRect();
    const missing = [window.innerWidth - right, window.innerHeight - bottom];
    return missing.every((pixels) => pixels >= 0 && pixels < 60);
  },
};
