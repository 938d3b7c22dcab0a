(() => {
  "use strict";

  const fill = (details) => {
    const template = details.querySelector(":scope > template");
    if (template) template.replaceWith(template.content);
  };

  const find = (id) => {
    const there = document.getElementById(id);
    if (there) return there;
    for (const template of document.querySelectorAll("details > template")) {
      if (template.content.getElementById(id)) {
        fill(template.parentElement);
        return document.getElementById(id);
      }
    }
    return null;
  };

  const reveal = (hash) => {
    let id = "";
    try { id = decodeURIComponent(hash.slice(1)); } catch { return null; }
    const target = id ? find(id) : null;
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") { fill(node); node.open = true; }
    }
    return target;
  };

  // Heights of blocks that were never laid out are estimates, so scrolling is repeated after layout.
  const go = () => {
    const target = reveal(location.hash);
    if (!target) return;
    for (const old of document.querySelectorAll(".here")) old.classList.remove("here");
    target.classList.add("here");
    let tries = 4;
    const settle = () => {
      target.scrollIntoView({ block: "start" });
      if (--tries) requestAnimationFrame(settle);
    };
    settle();
  };

  const folds = () => document.querySelectorAll("main details");

  document.addEventListener("toggle", (event) => {
    if (event.target.tagName === "DETAILS" && event.target.open) fill(event.target);
  }, true);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    reveal(link.hash);
    if (link.hash === location.hash) go();
  });
  addEventListener("hashchange", go);

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...folds()].filter((details) => !details.open);
    for (const details of unfolded) { fill(details); details.open = true; }
  });
  addEventListener("afterprint", () => {
    for (const details of unfolded) details.open = false;
    unfolded = [];
  });

  for (const button of document.querySelectorAll("button[data-fold]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.dataset.fold === "open";
      for (const details of document.querySelectorAll("#transcript details")) {
        if (open) fill(details);
        details.open = open;
      }
    });
  }
  go();
})();
