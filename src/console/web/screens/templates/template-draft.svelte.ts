/**
 * A template that is edited: what is stored, what is typed, and the copy of it that this browser keeps until it is saved.
 *
 * Every save makes a version, so nothing is saved on its own. Instead each change is kept in the browser within a moment, under the operator,
 * workspace and template, and is there again after a reload, a sign-out or a lost connection. A save with an outdated tag is refused.
 */
import type { components } from '#api/rest'
import { answerTagged, currentScope, ifMatch, rest } from '../../api/client'
import type { ApiFault } from '../../api/fault'
import type { Tagged } from '../../state/edited.svelte'
import { asFault } from '../../state/loaded.svelte'
import { me } from '../../state/session.svelte'
import type { Properties } from './document/document'
import { Editor } from './editor/editor.svelte'

export type Template = components['schemas']['Template']

/** As the API takes it. */
export type ApiStructure = components['schemas']['TemplateStructure']
export type Content = { readonly html: string } | { readonly json_structure: ApiStructure }

/** Documents are as free as JSON here; the API says what is wrong with them. */
export const asStructure = (structure: Properties) => structure as unknown as ApiStructure

interface Typed {
  readonly name: string
  /** Undefined: the template is HTML. */
  readonly structure: Properties | undefined
  readonly html: string | undefined
}

interface Kept extends Typed {
  /** Of the version that was edited. */
  readonly etag: string
  /** Ms since epoch. */
  readonly at: number
}

const PREFIX = 'postroad-template-draft'
const PAUSE_MS = 300
/** What nobody came back for. */
const FORGOTTEN_AFTER_MS = 60 * 86_400_000

export class TemplateDraft {
  readonly editor: Editor
  name = $state('')
  mode = $state<'blocks' | 'code'>('code')
  html = $state('')
  fault = $state.raw<ApiFault>()
  /** When the browser last kept what is typed, ms since epoch. */
  keptAt = $state<number>()
  /** The browser has no room for it. */
  isUnkept = $state(false)
  /** What is shown was kept by an earlier visit. */
  isRestored = $state(false)
  /** Another window of this browser edits the same template. */
  isElsewhere = $state(false)
  /** Somebody saved another version since the one that is edited. */
  isOutdated = $state(false)
  private stored = $state.raw<Tagged<Template>>()
  private etag = '*'
  private saved = $state.raw('')
  private id = ''
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(isReadOnly: boolean) {
    this.editor = new Editor(isReadOnly, () => this.changed())
  }

  get template(): Template | undefined {
    return this.stored?.body.data
  }

  get content(): Content {
    return this.mode === 'code' ? { html: this.html } : { json_structure: asStructure(this.editor.structure) }
  }

  get isChanged(): boolean {
    return this.stored !== undefined && JSON.stringify(this.typed) !== this.saved
  }

  private get typed(): Typed {
    const isCode = this.mode === 'code'
    return {
      name: this.name,
      structure: isCode ? undefined : this.editor.structure,
      html: isCode ? this.html : undefined,
    }
  }

  private get key(): string {
    const { workspaceId = '', isSandbox } = currentScope()
    return [PREFIX, me()?.id ?? '', workspaceId, isSandbox ? 'sandbox' : '', this.id].join(' ')
  }

  /** Reads the template, and what the browser keeps of it. */
  async open(id: string): Promise<void> {
    this.id = id
    this.fault = undefined
    try {
      this.take(await this.read())
      this.restore()
      forgetOld()
    } catch (error) {
      this.fault = asFault(error)
    }
  }

  private read(): Promise<Tagged<Template>> {
    return answerTagged(rest.GET('/templates/{id}', { params: { path: { id: this.id } } }))
  }

  /** Shows what is stored. */
  private take(stored: Tagged<Template>): void {
    this.stored = stored
    this.etag = stored.etag
    this.isOutdated = false
    const { name, html, json_structure: structure } = stored.body.data
    this.name = name
    this.html = html
    this.mode = structure === null ? 'code' : 'blocks'
    this.editor.open(structure)
    this.saved = JSON.stringify(this.typed)
  }

  private restore(): void {
    const kept = readKept(this.key)
    if (!kept) return
    this.name = kept.name
    this.mode = kept.structure === undefined ? 'code' : 'blocks'
    if (kept.structure) this.editor.open(kept.structure)
    if (kept.html !== undefined) this.html = kept.html
    this.keptAt = kept.at
    this.isRestored = this.isChanged
    this.isOutdated = this.isChanged && kept.etag !== this.etag
    this.etag = kept.etag
    if (!this.isChanged) this.forgetKept()
  }

  /** Reads again what is stored; if something is typed, only says that there is a newer version. */
  async look(): Promise<void> {
    if (!this.stored) return
    const now = await this.read().catch(() => undefined)
    if (!now || now.etag === this.etag) return
    if (this.isChanged) this.isOutdated = true
    else this.take(now)
  }

  /** To be called after each change of what is typed. */
  changed(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.keep(), PAUSE_MS)
  }

  /** At once, e.g. before the window closes. */
  keep(): void {
    clearTimeout(this.timer)
    if (!this.stored || this.editor.isReadOnly) return
    if (!this.isChanged) {
      this.forgetKept()
      return
    }
    const kept: Kept = { ...this.typed, etag: this.etag, at: Date.now() }
    try {
      localStorage.setItem(this.key, JSON.stringify(kept))
      this.keptAt = kept.at
      this.isUnkept = false
    } catch {
      this.isUnkept = true
    }
  }

  private forgetKept(): void {
    localStorage.removeItem(this.key)
    this.keptAt = undefined
    this.isRestored = false
    this.isUnkept = false
  }

  /** Another window has kept something. */
  heard({ key, newValue }: StorageEvent): void {
    if (key === this.key && newValue !== null) this.isElsewhere = true
  }

  /** @param seen `*` to save over the version of somebody else. @throws ApiFault; what is typed stays */
  async save(seen = this.etag): Promise<void> {
    const sent = this.typed
    const before = JSON.parse(this.saved) as Typed
    const { name, structure, html } = sent
    const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
    const answered = await answerTagged(
      rest.PATCH('/templates/{id}', {
        params: { path: { id: this.id }, header: ifMatch(seen) },
        body: {
          name: name.trim(),
          // HTML that was stored beside the blocks stays unless the blocks change.
          ...(structure === undefined || isSame(structure, before.structure)
            ? {}
            : { json_structure: asStructure(structure) }),
          ...(html === undefined ? {} : { html, json_structure: null }),
        },
      }),
    )
    const isTypedSince = !isSame(this.typed, sent)
    this.stored = answered
    this.etag = answered.etag
    this.isOutdated = false
    this.isRestored = false
    this.isElsewhere = false
    if (isTypedSince) this.saved = JSON.stringify(sent)
    else {
      this.name = answered.body.data.name
      this.saved = JSON.stringify(this.typed)
    }
    this.keep()
  }

  /** Takes what is stored instead of what is typed; of blocks, the change can be undone. */
  async discard(): Promise<void> {
    const now = await this.read()
    const { json_structure: structure, html, name } = now.body.data
    if (structure === null || this.mode === 'code') this.take(now)
    else {
      this.editor.replace(structure)
      this.stored = now
      this.etag = now.etag
      this.isOutdated = false
      this.name = name
      this.html = html
      this.saved = JSON.stringify(this.typed)
    }
    clearTimeout(this.timer)
    this.forgetKept()
  }

  /** From blocks to HTML. Nothing changes in what is stored until it is saved. */
  toCode(html: string): void {
    this.html = html
    this.mode = 'code'
    this.changed()
  }

  /** Takes a version that was restored. */
  show(stored: Tagged<Template>): void {
    this.take(stored)
    this.forgetKept()
  }

  /** The template was deleted. */
  forget(): void {
    clearTimeout(this.timer)
    this.saved = JSON.stringify(this.typed)
    this.forgetKept()
  }
}

function readKept(key: string): Kept | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? 'null') as Kept | null
    return typeof kept?.name === 'string' && typeof kept.etag === 'string' ? kept : undefined
  } catch {
    return undefined
  }
}

function forgetOld(): void {
  for (const key of Object.keys(localStorage))
    if (key.startsWith(PREFIX) && Date.now() - (readKept(key)?.at ?? 0) > FORGOTTEN_AFTER_MS)
      localStorage.removeItem(key)
}
