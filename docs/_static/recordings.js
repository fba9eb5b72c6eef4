// Gives an embedded recording the height that it tells, and tells it the theme of the page.
"use strict";
(() => {
  const theme = () => document.documentElement.dataset.theme;
  const tell = (frame) => frame.contentWindow.postMessage({type: "maxmargin-theme", theme: theme()}, "*");
  const frames = () => [...document.querySelectorAll("iframe.recording")];

  addEventListener("message", ({source, data}) => {
    if (data?.type !== "maxmargin-height" || !Number.isFinite(data.height)) return;
    const frame = frames().find((each) => each.contentWindow === source);
    if (!frame) return;
    frame.style.height = `${data.height}px`;
    tell(frame);
  });
  new MutationObserver(() => frames().forEach(tell))
    .observe(document.documentElement, {attributeFilter: ["data-theme"]});
})();
