  const said = document.getElementById("said");

  // Copy buttons. Where the clipboard is refused, the text is selected instead.
  for (const button of document.querySelectorAll(".copy")) {
    const source = document.getElementById(button.dataset.copy);
    if (!source) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        said.textContent = "Copied.";
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      } catch {
        getSelection().selectAllChildren(source);
        said.textContent = "Selected. Copy it with your keyboard.";
      }
    });
  }

  // A link to a fact inside a closed details element opens it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  };
  addEventListener("hashchange", open);
  open();

