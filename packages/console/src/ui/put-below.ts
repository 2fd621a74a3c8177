const GAP_PX = 4

/** Puts a popover below its button, with their right edges in line: a popover lies in the top layer. */
export function putBelow(panel: HTMLElement, button: HTMLElement): void {
  const { bottom, right } = button.getBoundingClientRect()
  panel.style.top = `${bottom + GAP_PX}px`
  panel.style.right = `${document.documentElement.clientWidth - right}px`
}
