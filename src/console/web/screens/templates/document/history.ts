/** Undo and redo: the states of a document, and what was selected in them. Immutable. */
import type { EditorDocument } from './document.js'

export interface State {
  readonly document: EditorDocument
  /** Key of the selected block. */
  readonly selected: string | undefined
}

export interface History {
  readonly past: readonly State[]
  readonly present: State
  readonly future: readonly State[]
  /** What the last change was about, e.g. a field; changes of the same in quick succession are undone together. */
  readonly topic: string | undefined
  /** Of the last change, ms. */
  readonly changedAt: number
}

const MAX_STATES = 200
/** A pause in typing begins a new step. */
const PAUSE_MS = 800

export function begin(document: EditorDocument): History {
  return { past: [], present: { document, selected: undefined }, future: [], topic: undefined, changedAt: 0 }
}

/** @param topic undefined for a change that is a step of its own */
export function commit(history: History, present: State, topic: string | undefined, now: number): History {
  const { past, present: before } = history
  if (present.document === before.document) return select(history, present.selected)
  const isSameStep = topic !== undefined && topic === history.topic && now - history.changedAt < PAUSE_MS
  return {
    past: isSameStep ? past : [...past, before].slice(-MAX_STATES),
    present,
    future: [],
    topic,
    changedAt: now,
  }
}

export function select(history: History, selected: string | undefined): History {
  const { present } = history
  return present.selected === selected ? history : { ...history, present: { ...present, selected } }
}

export function undo(history: History): History {
  const { past, present, future } = history
  const before = past.at(-1)
  if (!before) return history
  return {
    ...history,
    past: past.slice(0, -1),
    present: before,
    future: [present, ...future],
    topic: undefined,
  }
}

export function redo(history: History): History {
  const { past, present, future } = history
  const [after, ...later] = future
  if (!after) return history
  return { ...history, past: [...past, present], present: after, future: later, topic: undefined }
}
