// Measures what an open notebook shows: its code, its rendered Markdown, its outputs. Needs notebook.js.
Object.assign(window.course, {
  // Height of the whole notebook, if nothing had to be scrolled.
  height(path) {
    const cells = course.panel(path).content.widgets.map((cell) => cell.node);
    return Math.ceil(
      cells.at(-1).getBoundingClientRect().bottom - cells[0].getBoundingClientRect().top,
    );
  },

  scrollToTop(path) {
    course.panel(path).content.node.querySelector(".jp-WindowedPanel-outer").scrollTop = 0;
  },

  // The cells of a notebook, with what they show: editors, rendered Markdown, outputs.
  places(path) {
    return course.panel(path).content.widgets.flatMap((cell, index) =>
      [...cell.node.querySelectorAll(".cm-scroller, .jp-MarkdownOutput, .jp-OutputArea-output")]
        .filter((node) => node.offsetHeight > 0)
        .map((node) => ({ index, node })),
    );
  },

  // What is wider than its place, and would have to be scrolled sideways, is cut, or juts out.
  tooWide(path) {
    return course.places(path).flatMap(({ index, node }) => {
      const right = node.getBoundingClientRect().right + 1;
      return [node, ...node.querySelectorAll("*")]
        .filter((part) => !part.closest("[aria-hidden=true]"))
        .filter((part) => course.scrolls(part) || part.getBoundingClientRect().right > right)
        .map((part) => `cell ${index}: ${part.tagName} ${part.textContent.trim().slice(0, 60)}`);
    });
  },

  scrolls(part) {
    const hides = getComputedStyle(part).overflowX !== "visible";
    return hides && part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1;
  },

  // Height of all that stands below each code cell, in CSS pixels.
  heights(path) {
    return course
      .panel(path)
      .content.widgets.map((cell) => cell.node.querySelector(".jp-Cell-outputArea"))
      .map((area) => area?.offsetHeight ?? 0);
  },

  // Where the links of the paragraphs lead that begin with these words.
  links(path, words) {
    const { node } = course.panel(path).content;
    return [...node.querySelectorAll(".jp-MarkdownOutput p")]
      .filter((paragraph) => paragraph.textContent.startsWith(words))
      .flatMap((paragraph) => [...paragraph.querySelectorAll("a")].map((link) => link.href));
  },

  outputs(path, selector) {
    const nodes = course.places(path).map(({ node }) => node);
    return nodes.flatMap((node) => (node.closest(".jp-Cell-outputArea") ? [...node.querySelectorAll(selector)] : []));
  },

  tables(path) {
    return course.outputs(path, "table").map((table) => ({
      rows: table.rows.length,
      width: table.offsetWidth,
      height: table.offsetHeight,
    }));
  },

  // Each plot: its size, its words, and whether a pixel of it lets the page shine through.
  images(path) {
    return course.outputs(path, "img").map((image) => {
      const canvas = new OffscreenCanvas(image.naturalWidth || 1, image.naturalHeight || 1);
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      let opaque = true;
      for (let i = 3; i < data.length; i += 4) opaque &&= data[i] === 255;
      return { width: image.offsetWidth, natural: image.naturalWidth, alt: image.alt, opaque };
    });
  },

  // Contrast of every piece of text in the outputs with what lies behind it, by WCAG's formula.
  // A pixel on which the colours are laid one over the other makes out what is translucent.
  contrasts(path) {
    return course
      .places(path)
      .filter(({ node }) => node.closest(".jp-Cell-outputArea"))
      .flatMap(({ index, node }) => course.texts(node).map((part) => ({ index, part })))
      .map(({ index, part }) => ({
        where: `cell ${index}: ${part.textContent.trim().slice(0, 60)}`,
        ratio: course.contrast(part),
      }));
  },

  // The elements that hold text themselves, but for what is drawn with characters.
  texts(node) {
    const all = [node, ...node.querySelectorAll("*")];
    const holds = (part) => [...part.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    return all.filter((part) => holds(part) && part.checkVisibility() && !part.closest("[aria-hidden=true]"));
  },

  contrast(part) {
    const layers = [];
    for (let at = part; at; at = at.parentElement) layers.unshift(getComputedStyle(at));
    const behind = layers.map((style) => style.backgroundColor);
    const ink = part instanceof SVGElement ? layers.at(-1).fill : layers.at(-1).color;
    const [light, dark] = [course.luminance(behind), course.luminance([...behind, ink])].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  },

  pixel: new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }),

  // Relative luminance of colours laid one over the other, the first one lowest.
  luminance(colours) {
    for (const colour of ["white", ...colours]) {
      course.pixel.fillStyle = colour;
      course.pixel.fillRect(0, 0, 1, 1);
    }
    const channels = [...course.pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => byte / 255);
    const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  },
});
