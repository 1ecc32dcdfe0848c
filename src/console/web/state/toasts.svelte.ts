/** Short messages about what was done, some of them with a way back. */

export interface Toast {
  readonly id: number
  readonly text: string
  readonly kind: 'done' | 'fault'
  readonly undo: (() => void) | undefined
}

const SHOWN_MS = 6_000
/** Long enough to read it and think again. */
const SHOWN_WITH_UNDO_MS = 15_000

const state = $state<{ toasts: Toast[] }>({ toasts: [] })
let nextId = 1

export function toasts(): readonly Toast[] {
  return state.toasts
}

export function say(
  text: string,
  more: { readonly kind?: Toast['kind']; readonly undo?: () => void } = {},
): void {
  const toast: Toast = { id: nextId++, text, kind: more.kind ?? 'done', undo: more.undo }
  state.toasts = [...state.toasts, toast]
  // Faults stay until they are closed.
  const shownMs = toast.undo ? SHOWN_WITH_UNDO_MS : SHOWN_MS
  if (toast.kind === 'done') setTimeout(() => dismiss(toast.id), shownMs)
}

export function dismiss(id: number): void {
  state.toasts = state.toasts.filter(toast => toast.id !== id)
}
