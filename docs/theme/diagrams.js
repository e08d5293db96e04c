// Draws the pages' Mermaid diagrams. `make docs` puts mermaid.min.js beside the book when it has npm; without it a
// diagram stays the text that it is written as, which reads well enough.
(() => {
    const blocks = document.querySelectorAll("code.language-mermaid");
    if (blocks.length === 0) return;

    const script = document.createElement("script");
    script.src = `${path_to_root}mermaid.min.js`;
    script.onload = () => {
        for (const block of blocks) {
            const drawing = document.createElement("pre");
            drawing.className = "mermaid";
            drawing.textContent = block.textContent;
            block.closest("pre").replaceWith(drawing);
        }
        const dark = ["navy", "coal", "ayu"].some((name) => document.documentElement.classList.contains(name));
        window.mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "neutral" });
        window.mermaid.run({ querySelector: "pre.mermaid" });
    };
    document.head.append(script);
})();
