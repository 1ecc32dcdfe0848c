/**
 * An automation that is edited: what is drawn, undo and redo, and when it is saved.
 *
 * Drafts and paused automations save themselves; changes to an active one wait to be applied. What is not saved yet is kept in the browser,
 * under the operator, workspace and automation, and is there again after a reload or a lost connection. A save with an outdated tag is refused.
 */
import { answer, answerTagged, currentScope, ifMatch, rest } from '../../api/client'
import type { ApiFault } from '../../api/fault'
import { tr } from '../../i18n/i18n'
import type { Tagged } from '../../state/edited.svelte'
import { asFault } from '../../state/loaded.svelte'
import { me } from '../../state/session.svelte'
import { fromApi, orderOf, toApi, type Automation, type Flow } from './flow/graph'
import { problemsIn, problemsOfRefusal, type FoundProblem } from './flow/problems'

interface Typed {
  readonly name: string
  readonly flow: Flow
}

interface Kept extends Typed {
  readonly etag: string
  readonly ids: readonly (readonly [string, string])[]
}

const PREFIX = 'postroad-automation-draft'
const SAVE_PAUSE_MS = 900
const CHECK_PAUSE_MS = 400
const KEEP_PAUSE_MS = 200
const MAX_STATES = 100
/** A pause in typing begins a new step of undo. */
const TYPING_PAUSE_MS = 900

export class FlowDraft {
  readonly isReadOnly: boolean
  fault = $state.raw<ApiFault>()
  /** Of the last save. */
  saveFault = $state.raw<ApiFault>()
  problems = $state.raw<readonly FoundProblem[]>()
  isSaving = $state(false)
  isRestored = $state(false)
  isOutdated = $state(false)
  private stored = $state.raw<Automation>()
  private typed = $state.raw<Typed>()
  private past = $state.raw<readonly Typed[]>([])
  private future = $state.raw<readonly Typed[]>([])
  private saved = $state.raw('')
  private topic: string | undefined
  private changedAt = 0
  private etag = '*'
  /** What the API calls steps that were made here. */
  private ids = new Map<string, string>()
  private id = ''
  private timers: Partial<Record<'save' | 'check' | 'keep', ReturnType<typeof setTimeout>>> = {}
  private checks = 0
  private saves = 0

  constructor(isReadOnly: boolean) {
    this.isReadOnly = isReadOnly
  }

  get automation(): Automation | undefined {
    return this.stored
  }

  get flow(): Flow | undefined {
    return this.typed?.flow
  }

  get name(): string {
    return this.typed?.name ?? ''
  }

  get isActive(): boolean {
    return this.stored?.status === 'active'
  }

  get isChanged(): boolean {
    return this.typed !== undefined && JSON.stringify(this.typed) !== this.saved
  }

  get canUndo(): boolean {
    return this.past.length > 0
  }

  get canRedo(): boolean {
    return this.future.length > 0
  }

  get errors(): readonly FoundProblem[] {
    return (this.problems ?? []).filter(({ severity }) => severity === 'error')
  }

  idOf(key: string): string {
    return this.ids.get(key) ?? key
  }

  /** Key of the step that the API calls so. */
  keyOf(id: string): string | undefined {
    for (const [key, one] of this.ids) if (one === id) return key
    return this.flow?.steps[id] ? id : undefined
  }

  problemsOf(key: string | null): readonly FoundProblem[] {
    return (this.problems ?? []).filter(one =>
      key === null ? one.code === 'invalid_trigger' : one.key === key,
    )
  }

  async open(id: string): Promise<void> {
    this.stop()
    this.id = id
    this.fault = this.saveFault = undefined
    this.stored = this.typed = this.problems = undefined
    try {
      this.take(await this.read())
      this.restore()
      void this.check()
    } catch (error) {
      this.fault = asFault(error)
    }
  }

  private read(): Promise<Tagged<Automation>> {
    return answerTagged(rest.GET('/automations/{id}', { params: { path: { id: this.id } } }))
  }

  private take({ body: { data }, etag }: Tagged<Automation>): void {
    this.stored = data
    this.etag = etag
    this.ids = new Map()
    this.typed = { name: data.name, flow: fromApi(data) }
    this.saved = JSON.stringify(this.typed)
    this.past = this.future = []
    this.isOutdated = false
    this.saveFault = undefined
  }

  /** Reads again what is stored; if something is typed, only says that there is a newer version. */
  async look(): Promise<void> {
    if (!this.stored || this.isSaving) return
    const { saves } = this
    const found = await this.read().catch(() => undefined)
    // What a save changed meanwhile is newer.
    if (!found || saves !== this.saves) return
    if (found.etag === this.etag) this.stored = found.body.data
    else if (this.isChanged) this.isOutdated = true
    else {
      this.take(found)
      void this.check()
    }
  }

  /** @param topic changes of the same in quick succession are undone together */
  change(flow: Flow, topic?: string): void {
    if (this.typed) this.commit({ ...this.typed, flow }, topic)
  }

  rename(name: string): void {
    if (this.typed) this.commit({ ...this.typed, name }, 'name')
  }

  private commit(next: Typed, topic: string | undefined): void {
    const { typed } = this
    if (!typed || this.isReadOnly) return
    const isSame =
      topic !== undefined && topic === this.topic && Date.now() - this.changedAt < TYPING_PAUSE_MS
    if (!isSame) this.past = [...this.past, typed].slice(-MAX_STATES)
    this.future = []
    this.topic = topic
    this.changedAt = Date.now()
    this.typed = next
    this.touched()
  }

  undo(): void {
    const before = this.past.at(-1)
    if (!before || !this.typed) return
    this.past = this.past.slice(0, -1)
    this.future = [this.typed, ...this.future]
    this.typed = before
    this.topic = undefined
    this.touched()
  }

  redo(): void {
    const [after, ...later] = this.future
    if (!after || !this.typed) return
    this.future = later
    this.past = [...this.past, this.typed]
    this.typed = after
    this.topic = undefined
    this.touched()
  }

  private touched(): void {
    this.saveFault = undefined
    this.after('keep', KEEP_PAUSE_MS, () => this.keep())
    this.after('check', CHECK_PAUSE_MS, () => void this.check())
    if (!this.isActive) this.after('save', SAVE_PAUSE_MS, () => void this.save())
  }

  private after(what: 'save' | 'check' | 'keep', ms: number, work: () => void): void {
    clearTimeout(this.timers[what])
    this.timers[what] = setTimeout(work, ms)
  }

  private stop(): void {
    for (const timer of Object.values(this.timers)) clearTimeout(timer)
  }

  /** Trigger and steps as the API takes them. */
  get written() {
    const { flow, stored } = this
    if (!flow || !stored) return {}
    return {
      // The trigger of an active automation cannot be changed, nor sent otherwise than it is.
      ...(this.isActive ? {} : { trigger_type: flow.trigger.type, trigger_config: flow.trigger.config }),
      steps: toApi(flow, key => this.idOf(key)),
    }
  }

  /** A second save while one is under way waits for it. @param seen `*` to save over the version of somebody else */
  async save(seen = this.etag): Promise<boolean> {
    clearTimeout(this.timers.save)
    if (this.isReadOnly || !this.typed) return false
    if (this.isSaving) {
      this.after('save', SAVE_PAUSE_MS, () => void this.save())
      return false
    }
    if (!this.isChanged) return true
    const sent = this.typed
    const order = orderOf(sent.flow)
    this.isSaving = true
    this.saves += 1
    try {
      const { body, etag } = await answerTagged(
        rest.PUT('/automations/{id}/flow', {
          params: { path: { id: this.id }, header: ifMatch(seen) },
          body: { name: sent.name.trim() || tr().automations.title, ...this.written },
        }),
      )
      for (const [at, key] of order.entries()) {
        const step = body.data.steps[at]
        if (step) this.ids.set(key, step.id)
      }
      this.stored = body.data
      this.etag = etag
      this.saved = JSON.stringify(sent)
      this.saveFault = undefined
      this.isOutdated = false
      this.isRestored = false
      this.keep()
      return true
    } catch (error) {
      this.saveFault = asFault(error)
      if (this.saveFault.status === 412) this.isOutdated = true
      // What could not be reached is tried again.
      if (this.saveFault.code === 'network' && !this.isActive)
        this.after('save', SAVE_PAUSE_MS * 5, () => void this.save())
      return false
    } finally {
      this.isSaving = false
      if (this.mayGoOn()) this.after('save', SAVE_PAUSE_MS, () => void this.save())
    }
  }

  /** Whether there is more to be saved on its own. */
  private mayGoOn(): boolean {
    return this.isChanged && this.saveFault === undefined && !this.isActive
  }

  /** Takes what is stored instead of what is typed. */
  async discard(): Promise<void> {
    this.stop()
    this.take(await this.read())
    this.isRestored = false
    this.keep()
    await this.check()
  }

  /** Saves first what is typed. @throws ApiFault */
  async setStatus(status: 'active' | 'paused'): Promise<void> {
    if (this.isChanged && !(await this.save())) {
      if (this.saveFault) throw this.saveFault
      return
    }
    const { body, etag } = await answerTagged(
      rest.PATCH('/automations/{id}', {
        params: { path: { id: this.id }, header: ifMatch(this.etag) },
        body: { status },
      }),
    )
    this.stored = body.data
    this.etag = etag
  }

  async check(): Promise<void> {
    if (this.isReadOnly || !this.flow) return
    const run = ++this.checks
    const order = orderOf(this.flow)
    try {
      const { data } = await answer(
        rest.POST('/automations/{id}/check', { params: { path: { id: this.id } }, body: this.written }),
      )
      if (run !== this.checks) return
      this.problems = problemsIn(data.problems, order)
    } catch (error) {
      if (run !== this.checks) return
      this.problems = problemsOfRefusal(asFault(error), order)
    }
  }

  /** The automation was deleted, or its copy elsewhere is of no more use. */
  forget(): void {
    this.stop()
    this.saved = JSON.stringify(this.typed)
    localStorage.removeItem(this.key)
  }

  private get key(): string {
    const { workspaceId = '', isSandbox } = currentScope()
    return [PREFIX, me()?.id ?? '', workspaceId, isSandbox ? 'sandbox' : '', this.id].join(' ')
  }

  /** At once, e.g. before the window closes. */
  keep(): void {
    clearTimeout(this.timers.keep)
    if (!this.typed || this.isReadOnly) return
    try {
      if (!this.isChanged) localStorage.removeItem(this.key)
      else {
        const kept: Kept = { ...this.typed, etag: this.etag, ids: [...this.ids] }
        localStorage.setItem(this.key, JSON.stringify(kept))
      }
    } catch {
      // Without room in the browser, the save is what counts.
    }
  }

  private restore(): void {
    const kept = readKept(this.key)
    if (!kept || this.isReadOnly) return
    this.typed = { name: kept.name, flow: kept.flow }
    this.ids = new Map(kept.ids)
    this.isRestored = this.isChanged
    this.isOutdated = this.isChanged && kept.etag !== this.etag
    this.etag = kept.etag
    if (this.isChanged && !this.isActive && !this.isOutdated) this.touched()
  }

  /** The screen is left: what waits is sent. */
  leave(): void {
    this.keep()
    if (this.isChanged && !this.isActive && !this.isOutdated) void this.save()
    this.stop()
  }
}

function readKept(key: string): Kept | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? 'null') as Kept | null
    return typeof kept?.name === 'string' && typeof kept.flow === 'object' && Array.isArray(kept.ids)
      ? kept
      : undefined
  } catch {
    return undefined
  }
}
