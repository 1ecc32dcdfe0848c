/** Requests that wait for the operator to sign in again, or to confirm who they are. The dialogs in `App.svelte` read this. */
import { ApiFault } from './fault'

export type Asked = 'sign-in' | 'confirm'

interface Waiting {
  readonly asked: Asked
  readonly promise: Promise<void>
  readonly done: () => void
  readonly cancel: (fault: ApiFault) => void
}

let waiting: Waiting | undefined
/** Otherwise the sign-in screen is there, and whatever still waits for an answer is of a screen that has gone. */
let isSignedIn = false
const state = $state<{ asked: Asked | undefined }>({ asked: undefined })

export function asked(): Asked | undefined {
  return state.asked
}

/** @throws ApiFault if the operator closes the dialog */
export function askToSignIn(): Promise<void> {
  return ask('sign-in')
}

/** @throws ApiFault if the operator closes the dialog */
export function askToConfirm(): Promise<void> {
  return ask('confirm')
}

/** Call it after a sign-in or sign-out. */
export function noteSignedIn(isThere: boolean): void {
  isSignedIn = isThere
  if (!isThere) cancelSignIn()
}

/** All requests that wait share one dialog. */
async function ask(asked: Asked): Promise<void> {
  if (!isSignedIn) throw new ApiFault('cancelled', 'not signed in')
  if (waiting) return waiting.promise
  let done = () => {}
  let cancel: (fault: ApiFault) => void = () => {}
  const promise = new Promise<void>((resolve, reject) => {
    done = resolve
    cancel = reject
  })
  waiting = { asked, promise, done, cancel }
  state.asked = asked
  return promise
}

export function signedInAgain(): void {
  const { done } = waiting ?? {}
  close()
  done?.()
}

export function cancelSignIn(): void {
  const { cancel } = waiting ?? {}
  close()
  cancel?.(new ApiFault('cancelled', 'not signed in'))
}

function close(): void {
  waiting = undefined
  state.asked = undefined
}
