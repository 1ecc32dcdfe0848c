/**
 * The address bar as state: path below `/console`, and query.
 *
 * Every state a person may want to return to or share is in the URL. `workspace` and `sandbox` stay in the query across screens.
 */
import { tr } from '../i18n/i18n'
import { GuardedHistory } from './guarded-history'
import { isInConsole, readPlace, urlFrom, urlWith, type Place, type Query } from './place'

const state = $state<{ place: Place }>({ place: readPlace(location) })

const entries = new GuardedHistory(
  window,
  () => (state.place = readPlace(location)),
  () => confirm(tr().common.unsaved),
)

/** How far the place was scrolled when it was left, for those who come back to it; 0 if they come anew. */
export function scrollToRestore(): number {
  return entries.scrollToRestore()
}

export function place(): Place {
  return state.place
}

/** @returns a query parameter of the current place, or '' */
export function param(name: string): string {
  return state.place.query.get(name) ?? ''
}

/** The URL of a screen: `href('/messages', { status: 'bounced' })`. The chosen workspace goes along. */
export function href(path: string, query: Query = {}): string {
  return urlFrom(state.place, path, query)
}

export function go(path: string, query: Query = {}): void {
  visit(href(path, query))
}

/** Opens a URL of the console, unless a form with unsaved words says no. */
export function visit(url: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'replace') entries.replace(url)
  else if (!entries.push(url)) return
  state.place = readPlace(location)
}

/** Changes parameters of the current place; '' removes one. Filters replace the entry in the history: Back leaves the screen. */
export function setParams(
  changes: Readonly<Record<string, string>>,
  how: 'push' | 'replace' = 'replace',
): void {
  visit(urlWith(state.place, changes), how)
}

/**
 * Asks before the screen is left while a form has changes. When the page itself goes, the browser asks: it allows no dialog of ours then.
 *
 * @returns a function that ends it
 */
export function guardLeaving(hasChanges: () => boolean): () => void {
  const release = entries.guardWith(hasChanges)
  const beforeUnload = (event: BeforeUnloadEvent) => {
    if (hasChanges()) event.preventDefault()
  }
  addEventListener('beforeunload', beforeUnload)
  return () => {
    release()
    removeEventListener('beforeunload', beforeUnload)
  }
}

/** For clicks anywhere: links of the console change the place without loading the page again. */
export function followLink(event: MouseEvent): void {
  const { target, defaultPrevented, button, metaKey, ctrlKey, shiftKey, altKey } = event
  const anchor = target instanceof Element ? target.closest('a') : null
  if (!anchor || defaultPrevented || button !== 0 || metaKey || ctrlKey || shiftKey || altKey) return
  if (anchor.target !== '' || anchor.hasAttribute('download') || anchor.origin !== location.origin) return
  if (!isInConsole(anchor.pathname)) return
  event.preventDefault()
  visit(anchor.pathname + anchor.search)
}
