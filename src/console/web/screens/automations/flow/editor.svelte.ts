/** What the parts of the editor share: the draft, what is selected, and what is shown on the steps. */
import { getContext, setContext } from 'svelte'
import { tr } from '../../../i18n/i18n'
import { say } from '../../../state/toasts.svelte'
import type { StepCounts } from '../automations'
import type { FlowDraft } from '../flow-draft.svelte'
import {
  duplicate,
  insert,
  MAX_STEPS,
  moveDown,
  moveUp,
  newStep,
  orderOf,
  remove,
  targetOf,
  type Flow,
  type FlowStep,
  type StepType,
  type Way,
} from './graph'
import { layOut, type Layout } from './layout'
import { FlowNames } from './names.svelte'

/** The way of one contact, or of a dry run. */
export interface Trail {
  /** When each step was taken last, ISO 8601, by key. */
  readonly times: ReadonlyMap<string, string>
  readonly ways: ReadonlySet<string>
}

export const TRIGGER = 'trigger'

export class FlowEditor {
  readonly draft: FlowDraft
  readonly names = new FlowNames()
  /** Key of a step, or TRIGGER. */
  selected = $state<string>()
  /** Where a step is being added. */
  adding = $state.raw<Way>()
  trail = $state.raw<Trail>()
  /** Shown in the middle once, after the next change of the drawing. */
  wanted = $state<string>()
  private counts = $state.raw<ReadonlyMap<string, StepCounts>>(new Map())

  constructor(draft: FlowDraft) {
    this.draft = draft
  }

  get flow(): Flow {
    return this.draft.flow ?? { trigger: { type: 'manual', config: {} }, first: null, steps: {} }
  }

  readonly order: readonly string[] = $derived.by(() => orderOf(this.flow))
  readonly layout: Layout = $derived.by(() => layOut(this.flow))

  get step(): FlowStep | undefined {
    return this.selected === undefined ? undefined : this.flow.steps[this.selected]
  }

  get isFull(): boolean {
    return this.order.length >= MAX_STEPS
  }

  setCounts(counts: readonly StepCounts[]): void {
    this.counts = new Map(counts.map(one => [one.step_id, one]))
  }

  countsOf(key: string): StepCounts | undefined {
    return this.counts.get(this.draft.idOf(key))
  }

  /** “Step 2, Wait”. */
  titleOf(key: string | null): string {
    const step = key === null ? undefined : this.flow.steps[key]
    const texts = tr().automations
    return step ? `${texts.stepNumber(this.numberOf(step.key))}, ${texts.steps[step.type]}` : texts.atStart
  }

  numberOf(key: string): number {
    return this.order.indexOf(key) + 1
  }

  select(key: string | undefined): void {
    this.selected = key
    if (key !== undefined) this.wanted = key
  }

  add(type: StepType): void {
    const { adding: way, flow } = this
    if (!way) return
    const key = `new-${crypto.randomUUID()}`
    this.draft.change(insert(flow, way, newStep(type, key, targetOf(flow, way) === null)))
    this.adding = undefined
    this.select(key)
  }

  remove(key: string): void {
    const { flow } = this
    const name = tr().automations.steps[flow.steps[key]?.type ?? 'email']
    const left = remove(flow, key)
    const others = Object.keys(flow.steps).length - Object.keys(left.steps).length - 1
    this.draft.change(left)
    this.selected = undefined
    say(tr().automations.removed(name, others), { undo: () => this.draft.undo() })
  }

  moved(key: string, where: 'up' | 'down'): Flow | undefined {
    return where === 'up' ? moveUp(this.flow, key) : moveDown(this.flow, key)
  }

  move(key: string, where: 'up' | 'down'): void {
    const changed = this.moved(key, where)
    if (!changed) return
    this.draft.change(changed)
    this.wanted = key
  }

  duplicate(key: string): void {
    const copy = `new-${crypto.randomUUID()}`
    this.draft.change(duplicate(this.flow, key, copy))
    this.select(copy)
  }
}

const CONTEXT = Symbol('flow editor')

export function provideEditor(editor: FlowEditor): FlowEditor {
  return setContext(CONTEXT, editor)
}

export function flowEditor(): FlowEditor {
  return getContext<FlowEditor>(CONTEXT)
}
