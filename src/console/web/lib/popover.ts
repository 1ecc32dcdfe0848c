/** Popovers of buttons. Needs a browser. */
import { flushSync } from 'svelte'

/**
 * Opens or closes a popover for its button (`popovertarget`) within the click.
 *
 * The browser reports an opened popover (`toggle`) some time later. A focus that moves only then takes keys away from where they were meant to go.
 *
 * @param draw called before it opens, to render what it shows
 * @param opened called once it is drawn, to place it and to focus something in it
 */
export function toggleWithin(
  event: MouseEvent,
  popover: HTMLElement | undefined,
  draw: () => void,
  opened: () => void,
): void {
  event.preventDefault()
  if (!popover) return
  if (!popover.matches(':popover-open')) flushSync(draw)
  popover.togglePopover()
  if (popover.matches(':popover-open')) opened()
}
