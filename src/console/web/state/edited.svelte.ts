/** A record and its draft on a screen. Changes by others are shown only while the draft has no edits. */
import type { ApiFault } from '../api/fault'
import { Loaded } from './loaded.svelte'

/** A record as answered, with the tag of that version. */
export interface Tagged<T> {
  readonly body: { readonly data: T }
  readonly etag: string
}

export class Edited<T, Draft> {
  draft = $state.raw<Draft>()
  private saved = $state.raw<string>()
  private readonly loaded = new Loaded<Tagged<T>>()
  private readonly draftOf: (record: T) => Draft

  /** @param initial draft of a new record */
  constructor(draftOf: (record: T) => Draft, initial?: Draft) {
    this.draftOf = draftOf
    this.draft = initial
    this.forget()
  }

  get value(): T | undefined {
    return this.loaded.value?.body.data
  }

  get fault(): ApiFault | undefined {
    return this.loaded.fault
  }

  /** Of the version that is edited; `*` before there is one. */
  get etag(): string {
    return this.loaded.value?.etag ?? '*'
  }

  get isChanged(): boolean {
    return JSON.stringify(this.draft) !== this.saved
  }

  /** Reads the record; its draft is discarded. */
  async load(read: () => Promise<Tagged<T>>): Promise<void> {
    await this.loaded.load(read)
    if (!this.fault) this.reset()
  }

  /** Reads again, unless something is typed before or meanwhile. */
  async reload(): Promise<void> {
    const isTyped = () => this.isChanged
    if (isTyped()) return
    await this.loaded.reload(isTyped)
    if (!isTyped() && !this.fault) this.reset()
  }

  /**
   * Takes what a change answered.
   *
   * @param sent the draft then: what has been typed since stays
   */
  take(answered: Tagged<T>, sent: Draft | undefined): void {
    this.loaded.set(answered)
    const draft = this.draftOf(answered.body.data)
    this.saved = JSON.stringify(draft)
    if (JSON.stringify(this.draft) === JSON.stringify(sent)) this.draft = draft
  }

  /** The draft is what is stored. */
  reset(): void {
    if (this.value === undefined) return
    this.draft = this.draftOf(this.value)
    this.saved = JSON.stringify(this.draft)
  }

  /** Nothing is left to be saved, e.g. of a record that has been deleted. */
  forget(): void {
    this.saved = JSON.stringify(this.draft)
  }
}
