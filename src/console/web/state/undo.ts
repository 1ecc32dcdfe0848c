/** A way back from a deletion, for the message that it was done. */
import { tr } from '../i18n/i18n'
import { asFault } from './loaded.svelte'
import { say } from './toasts.svelte'

/** @param restore brings it back @param after shows it */
export function undoBy(restore: () => Promise<unknown>, after: () => void): { readonly undo: () => void } {
  return { undo: () => void undone(restore, after) }
}

async function undone(restore: () => Promise<unknown>, after: () => void): Promise<void> {
  try {
    await restore()
    say(tr().audience.restored)
    after()
  } catch (error) {
    say(asFault(error).message, { kind: 'fault' })
  }
}
