// Every text's contrast ratio against what is painted behind it (WCAG 2.2, 1.4.3): [ratio, text, tag, class].
() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const opaque = (c) => c.length === 3 || (c.length === 4 && c[3] === 1);
  const behind = (element) => {
    const cell = element.closest("svg.heat g")?.querySelector("rect:not(.none):not(.win)");
    if (cell) return parse(getComputedStyle(cell).fill);
    if (element.closest("svg.heat") && !element.classList.contains("ax")) {
      let rect = element.previousElementSibling;
      while (rect.classList.contains("win")) rect = rect.previousElementSibling;
      return parse(getComputedStyle(rect).fill);
    }
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (opaque(c)) return c;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["STYLE", "TITLE", "title", "desc"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const front = luminance(parse(element.closest("svg") ? style.fill : style.color));
    const back = luminance(behind(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    found.push([ratio, walker.currentNode.data.trim().slice(0, 40), element.tagName, element.getAttribute("class") || ""]);
  }
  return found;
}
