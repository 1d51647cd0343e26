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

  runs(cell) {
    return cell.promptNode.textContent.includes("*");
  },

  failed(cell) {
    const { outputs } = cell.model;
    return [...Array(outputs.length).keys()].some((i) => outputs.get(i).type === "error");
  },

  // What their prompts say, and what stands below them.
  cells(path) {
    return course.codeCells(path).map((cell) => ({
      source: cell.model.sharedModel.getSource(),
      count: cell.model.executionCount,
      outputs: cell.model.outputs.toJSON(),
    }));
  },

  errors(path) {
    const outputs = course.cells(path).flatMap((cell) => cell.outputs);
    return outputs.filter((output) => output.output_type === "error");
  },

  // Whether these cells have run and nothing more will come of them.
  done(cells) {
    return cells.every((cell) => cell.model.executionCount !== null && !course.runs(cell));
  },

  // Whether every cell has run, or one has failed and stopped the rest. Asked again and again, so
  // it doesn't look into the outputs.
  finished(path) {
    const cells = course.codeCells(path);
    const stopped = cells.some(course.failed) && !cells.some(course.runs);
    return course.kernel(path)?.status === "idle" && (course.done(cells) || stopped);
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
