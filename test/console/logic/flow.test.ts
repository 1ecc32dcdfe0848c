/** Automations as they are drawn: read from the API's list and written to it, edited, and laid out. */
import t from 'tap'
import {
  configure,
  duplicate,
  fromApi,
  insert,
  joinOf,
  lead,
  moveDown,
  moveUp,
  newStep,
  orderOf,
  pathsOf,
  reachableFrom,
  remove,
  targetOf,
  toApi,
  waysOf,
  type Automation,
  type Flow,
  type FlowStep,
  type PathName,
  type StepType,
  type Target,
  type WrittenStep,
} from '../../../src/console/web/screens/automations/flow/graph'
import {
  endId,
  layOut,
  pathThrough,
  STEP_HEIGHT,
  STEP_WIDTH,
  wayId,
} from '../../../src/console/web/screens/automations/flow/layout'
import {
  problemsIn,
  problemsOfRefusal,
  problemText,
} from '../../../src/console/web/screens/automations/flow/problems'
import { FAULT_REASONS } from '../../../src/automations/flows/flow-fault.js'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import { es } from '../../../src/console/web/i18n/es'
import { fr } from '../../../src/console/web/i18n/fr'
import { keepLanguageIn } from '../../../src/console/web/i18n/i18n'
import { STEP_TYPES } from '../../../src/console/web/screens/automations/automations'
import { randomOf, type Random } from '../../support/content/random-structure'

interface StoredStep {
  readonly id: string
  readonly type: StepType
  readonly config: object
  readonly position: number
}

interface ServerPath {
  readonly name: PathName
  readonly to: StoredStep | undefined
  readonly missing?: string
}

/** Where the server sees each step lead. By URL: the types of the whole server would come along with an import. */
const { pathsOf: pathsOfServer } = (await import(
  new URL('../../../src/automations/flows/paths.js', import.meta.url).href
)) as { pathsOf: (step: StoredStep, steps: readonly StoredStep[]) => readonly ServerPath[] }

/** `{ a: 'delay b', b: 'condition c d' }`: types of steps, and where each of their ways leads; `-` is the end. */
function flowOf(steps: Readonly<Record<string, string>>): Flow {
  const [first = null] = Object.keys(steps)
  const read = (key: string, text: string): FlowStep => {
    const [type = '', ...targets] = text.split(' ')
    const config = type === 'move_to_flow' ? { exitCurrentFlow: targets.length === 0 } : {}
    const step = { key, type: type as StepType, config }
    const names = type === 'move_to_flow' ? (['next'] as const) : pathsOf(step)
    const to = (at: number): Target => (targets[at] === undefined || targets[at] === '-' ? null : targets[at])
    return { ...step, out: Object.fromEntries(names.map((name, at) => [name, to(at)])) }
  }
  return {
    trigger: { type: 'manual', config: {} },
    first,
    steps: Object.fromEntries(Object.entries(steps).map(([key, text]) => [key, read(key, text)])),
  }
}

/** The reverse of `flowOf`, in the order of a reader. */
const shown = (flow: Flow) =>
  Object.fromEntries(
    orderOf(flow).map(key => {
      const step = flow.steps[key]!
      return [key, [step.type, ...pathsOf(step).map(path => step.out[path] ?? '-')].join(' ')]
    }),
  )

const asAutomation = (steps: readonly WrittenStep[]) =>
  ({ trigger_type: 'manual', trigger_config: {}, steps }) as unknown as Automation

/** As the server stores it. */
const asStored = (steps: readonly WrittenStep[]) =>
  steps.map(({ id, step_type: type, config }, position): StoredStep => ({ id, type, config, position }))

const BRANCHED = flowOf({
  wait: 'delay if',
  if: 'condition mail tag',
  mail: 'email last',
  tag: 'tag last',
  last: 'webhook -',
})

t.test('a flow is written as a list and read as the same flow', t => {
  for (const flow of [
    flowOf({}),
    flowOf({ a: 'delay b', b: 'email -' }),
    BRANCHED,
    flowOf({ a: 'wait_for_event b c', b: 'email -', c: 'tag b' }),
    flowOf({ a: 'wait_for_event b b', b: 'email -' }),
    flowOf({ a: 'condition b -', b: 'move_to_flow' }),
    flowOf({ a: 'condition - -' }),
    flowOf({ a: 'delay b', b: 'condition a -' }),
    flowOf({ a: 'move_to_flow b', b: 'email -' }),
  ])
    t.same(shown(fromApi(asAutomation(toApi(flow, key => key)))), shown(flow))
  t.end()
})

t.test('a step names where it leads only if that is not the one after it', t => {
  const steps = toApi(BRANCHED, key => key.toUpperCase())
  t.same(
    steps.map(({ id, config }) => [id, config]),
    [
      ['WAIT', {}],
      ['IF', { trueBranchStepId: null, falseBranchStepId: 'TAG' }],
      ['MAIL', { nextStepId: 'LAST' }],
      ['TAG', {}],
      ['LAST', {}],
    ],
  )
  const [wait] = toApi(flowOf({ a: 'wait_for_event b -', b: 'email -' }), key => key)
  t.same(wait?.config, { timeoutAction: 'branch', timeoutBranch: 'end' })
  t.end()
})

t.test('a timeout is read in all three manners of the API, and a step that is gone as the end', t => {
  const steps = (config: object) =>
    asAutomation([
      { id: 'a', step_type: 'wait_for_event', config: config as WrittenStep['config'] },
      { id: 'b', step_type: 'email', config: {} },
      { id: 'c', step_type: 'tag', config: {} },
    ])
  const timeout = (config: object) => fromApi(steps(config)).steps['a']?.out
  t.same(timeout({}), { event: 'b', timeout: 'b' })
  t.same(timeout({ timeoutAction: 'skip' }), { event: 'b', timeout: 'c' })
  t.same(timeout({ timeoutAction: 'branch', timeoutBranch: 'c' }), { event: 'b', timeout: 'c' })
  t.same(timeout({ timeoutAction: 'branch', timeoutBranch: 'gone' }), { event: 'b', timeout: null })
  t.same(timeout({ nextStepId: 'end' }), { event: null, timeout: null })
  t.same(fromApi(steps({ eventType: 'email_opened', nextStepId: 'c' })).steps['a']?.config, {
    eventType: 'email_opened',
  })
  t.end()
})

/** Built as in the editor: by steps put into ways, ways led elsewhere, steps moved and removed. */
function randomFlow(random: Random, turns: number): Flow {
  let flow = flowOf({})
  for (let turn = 0; turn < turns; turn++) {
    const ways = waysOf(flow)
    const keys = Object.keys(flow.steps)
    const way = ways[random(ways.length)]!
    const key = keys[random(Math.max(1, keys.length))] ?? ''
    const choice = random(10)
    if (choice < 6) {
      const type = STEP_TYPES[random(STEP_TYPES.length)]!
      flow = insert(flow, way, newStep(type, `s${turn}`, targetOf(flow, way) === null))
    } else if (choice === 6)
      flow = lead(flow, way, random(4) === 0 ? null : (keys[random(Math.max(1, keys.length))] ?? null))
    else if (choice === 7) flow = remove(flow, key)
    else if (choice === 8) flow = (random(2) === 0 ? moveDown(flow, key) : moveUp(flow, key)) ?? flow
    else flow = duplicate(flow, key, `d${turn}`)
  }
  return flow
}

t.test('random flows are kept by the API: each way leads the server where it is drawn', t => {
  for (let seed = 1; seed <= 300; seed++) {
    const flow = randomFlow(randomOf(seed), 12)
    const written = toApi(flow, key => key)
    const stored = asStored(written)
    for (const step of stored)
      for (const { name, to, missing } of pathsOfServer(step, stored)) {
        const drawn = flow.steps[step.id]?.out[name] ?? null
        if (missing !== undefined || (to?.id ?? null) !== drawn)
          t.fail(`seed ${seed}, ${step.id} ${name}: ${to?.id ?? 'end'} instead of ${drawn ?? 'end'}`)
      }
    t.equal(written.length, Object.keys(flow.steps).length, `seed ${seed}: every step is sent`)
    t.same(shown(fromApi(asAutomation(written))), shown(flow), `seed ${seed}: and read back`)
  }
  t.end()
})

t.test('random flows have no way to a step that is gone', t => {
  for (let seed = 1; seed <= 300; seed++) {
    const flow = randomFlow(randomOf(seed), 15)
    for (const way of waysOf(flow)) {
      const target = targetOf(flow, way)
      if (target !== null && !flow.steps[target]) t.fail(`seed ${seed}: ${wayId(way)} leads to ${target}`)
    }
  }
  t.end()
})

t.test('steps are numbered as a reader goes: both branches, then what they lead to', t => {
  t.same(orderOf(BRANCHED), ['wait', 'if', 'mail', 'tag', 'last'])
  const nested = flowOf({
    a: 'condition b e',
    b: 'condition c d',
    c: 'email f',
    d: 'email f',
    e: 'tag f',
    f: 'webhook -',
  })
  t.same(orderOf(nested), ['a', 'b', 'c', 'd', 'e', 'f'])
  const loop = flowOf({ a: 'delay b', b: 'condition a -' })
  t.same(orderOf(loop), ['a', 'b'], 'a way back ends the reading')
  const lost = { ...BRANCHED, first: 'last' }
  t.same(orderOf(lost)[0], 'last')
  t.equal(orderOf(lost).length, 5, 'what is never reached comes last')
  t.end()
})

t.test('branches meet at the first step that both lead to', t => {
  t.equal(joinOf(BRANCHED, 'mail', 'tag', new Set()), 'last')
  t.equal(joinOf(BRANCHED, 'mail', null, new Set()), null)
  t.equal(joinOf(BRANCHED, 'mail', 'last', new Set()), 'last', 'an empty branch leads there at once')
  t.equal(joinOf(BRANCHED, 'mail', 'tag', new Set(['last'])), null, 'but not at one that stands before')
  t.end()
})

t.test('a step that is put into a way leads where the way led', t => {
  const wait = newStep('delay', 'new', false)
  t.same(shown(insert(flowOf({ a: 'email -' }), { from: null, path: 'next' }, wait)), {
    new: 'delay a',
    a: 'email -',
  })
  t.same(shown(insert(BRANCHED, { from: 'if', path: 'no' }, wait)), {
    wait: 'delay if',
    if: 'condition mail new',
    mail: 'email last',
    new: 'delay tag',
    tag: 'tag last',
    last: 'webhook -',
  })
  const branch = insert(
    flowOf({ a: 'email -' }),
    { from: null, path: 'next' },
    newStep('condition', 'new', false),
  )
  t.same(shown(branch)['new'], 'condition a a', 'both ways of a branch do')
  t.end()
})

t.test('moving to another automation ends this one only at the end of a way', t => {
  t.equal(newStep('move_to_flow', 'x', true).config['exitCurrentFlow'], true)
  t.equal(newStep('move_to_flow', 'x', false).config['exitCurrentFlow'], false)
  const inMiddle = insert(
    flowOf({ a: 'email -' }),
    { from: null, path: 'next' },
    newStep('move_to_flow', 'x', false),
  )
  t.same(shown(inMiddle), { x: 'move_to_flow a', a: 'email -' })
  const ending = configure(inMiddle, 'x', { exitCurrentFlow: true })
  t.same(orderOf(ending), ['x', 'a'], 'the step after it is not lost if it is made to end')
  t.notOk(reachableFrom(ending, ending.first).has('a'))
  t.end()
})

t.test('a removed step is passed over, and what only its branches led to goes with it', t => {
  t.same(shown(remove(BRANCHED, 'mail')), {
    wait: 'delay if',
    if: 'condition last tag',
    tag: 'tag last',
    last: 'webhook -',
  })
  t.same(Object.keys(shown(remove(BRANCHED, 'if'))), ['wait', 'mail', 'last'], 'the main way stays')
  t.same(shown(remove(flowOf({ a: 'condition a -' }), 'a')), {}, 'one that led to itself')
  t.equal(remove(BRANCHED, 'nowhere'), BRANCHED)
  t.end()
})

t.test('a step that was lost before is not removed with another one', t => {
  const flow = { ...BRANCHED, steps: { ...BRANCHED.steps, ...flowOf({ lost: 'email -' }).steps } }
  t.ok(remove(flow, 'if').steps['lost'])
  t.end()
})

t.test('steps change places with their neighbours, and back', t => {
  const flow = flowOf({ a: 'email b', b: 'delay c', c: 'tag -' })
  const down = moveDown(flow, 'a')!
  t.same(shown(down), { b: 'delay a', a: 'email c', c: 'tag -' })
  t.same(shown(moveUp(down, 'a')!), shown(flow))
  t.equal(moveUp(flow, 'a'), undefined, 'the first')
  t.equal(moveDown(flow, 'c'), undefined, 'the last')
  t.equal(moveDown(BRANCHED, 'wait'), undefined, 'not past a branch')
  t.equal(moveDown(BRANCHED, 'mail'), undefined, 'nor past where branches meet')
  t.end()
})

t.test('a copy stands after its step, with the same settings', t => {
  const flow = configure(flowOf({ a: 'delay b', b: 'tag -' }), 'a', { duration: 3, unit: 'days' })
  const doubled = duplicate(flow, 'a', 'copy')
  t.same(shown(doubled), { a: 'delay copy', copy: 'delay b', b: 'tag -' })
  t.same(doubled.steps['copy']?.config, { duration: 3, unit: 'days' })
  const ending = flowOf({ a: 'move_to_flow' })
  t.equal(duplicate(ending, 'a', 'copy'), ending, 'nothing can stand after a step that ends the run')
  t.end()
})

const boxesOf = (flow: Flow) =>
  layOut(flow).nodes.map(({ id, kind, x, y }) => ({
    id,
    x,
    y,
    right: x + (kind === 'end' ? 120 : STEP_WIDTH),
    bottom: y + (kind === 'end' ? 28 : STEP_HEIGHT),
  }))

t.test('no step is drawn over another one, and every way has its line', t => {
  for (let seed = 1; seed <= 300; seed++) {
    const flow = randomFlow(randomOf(seed), 14)
    const boxes = boxesOf(flow)
    for (const [at, one] of boxes.entries())
      for (const other of boxes.slice(at + 1))
        if (one.x < other.right && other.x < one.right && one.y < other.bottom && other.y < one.bottom)
          t.fail(`seed ${seed}: ${one.id} and ${other.id} overlap`)
    const ids = new Set(boxes.map(({ id }) => id))
    for (const key of Object.keys(flow.steps)) if (!ids.has(key)) t.fail(`seed ${seed}: ${key} is not drawn`)
    const { ways } = layOut(flow)
    t.same(ways.map(({ id }) => id).toSorted(), waysOf(flow).map(wayId).toSorted(), `seed ${seed}`)
    for (const { points, middle } of ways)
      if (![...points, middle].every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)))
        t.fail(`seed ${seed}: a point is nowhere`)
  }
  t.end()
})

t.test(
  'a line of steps is drawn from top to bottom, branches side by side, and below both what they lead to',
  t => {
    const at = Object.fromEntries(boxesOf(BRANCHED).map(box => [box.id, box]))
    t.ok(at['trigger']!.bottom < at['wait']!.y)
    t.equal(at['trigger']!.x, at['wait']!.x)
    t.ok(at['wait']!.bottom < at['if']!.y)
    t.equal(at['mail']!.y, at['tag']!.y, 'on one level')
    t.ok(at['mail']!.right < at['tag']!.x, 'yes on the left')
    t.ok(at['last']!.y > at['mail']!.bottom)
    t.equal(at['last']!.x, at['if']!.x, 'in the middle again')
    t.ok(at[endId({ from: 'last', path: 'next' })], 'the end is drawn')
    t.end()
  },
)

t.test('a way back runs beside all steps', t => {
  const flow = flowOf({ a: 'delay b', b: 'condition a c', c: 'tag -' })
  const right = Math.max(...boxesOf(flow).map(box => box.right))
  const back = layOut(flow).ways.find(({ id }) => id === wayId({ from: 'b', path: 'yes' }))!
  t.ok(Math.max(...back.points.map(({ x }) => x)) > right)
  const straight = layOut(flow).ways.find(({ id }) => id === wayId({ from: 'a', path: 'next' }))!
  t.equal(straight.points.length, 2)
  t.end()
})

t.test('a line is drawn through its corners, which are round as far as there is room', t => {
  t.equal(pathThrough([]), '')
  t.equal(
    pathThrough([
      { x: 0, y: 0 },
      { x: 0, y: 50 },
    ]),
    'M 0 0 L 0 50',
  )
  t.equal(
    pathThrough([
      { x: 0, y: 0 },
      { x: 0, y: 40 },
      { x: 6, y: 40 },
    ]),
    'M 0 0 L 0 37 Q 0 40 3 40 L 6 40',
    'half of the shorter side',
  )
  t.notMatch(
    pathThrough([
      { x: 0, y: 0 },
      { x: 0, y: 0 },
      { x: 0, y: 9 },
    ]),
    /NaN/,
  )
  t.end()
})

t.test('problems are told in the viewer’s language, without names of the API', t => {
  const problem = (more: object) =>
    problemText({
      code: 'invalid_step',
      severity: 'error',
      message: 'has no templateId',
      reason: null,
      field: null,
      key: 'a',
      ...more,
    })
  t.equal(problem({ reason: 'missing', field: 'templateId' }), 'Choose a template.')
  t.equal(problem({ reason: 'unknown', field: 'listId' }), 'The list was deleted; choose another.')
  t.equal(problem({ code: 'invalid_trigger', reason: 'missing', field: 'listId' }), 'Choose a list.')
  t.equal(problem({ reason: 'no_sender', field: 'templateId' }), en.automations.faults.reasons.no_sender)
  t.equal(problem({ code: 'loop' }), en.automations.faults.loop)
  t.equal(problem({ reason: 'missing', field: 'ofALaterVersion' }), en.automations.faults.otherField)
  for (const texts of [en, de, fr, es]) {
    keepLanguageIn({ language: 'en', locale: 'en', texts })
    for (const reason of FAULT_REASONS.filter(one => one !== 'missing' && one !== 'unknown'))
      t.ok(texts.automations.faults.reasons[reason], reason)
    for (const code of ['missing_step', 'loop', 'unreachable_step', 'no_steps', 'strange_condition'])
      t.notMatch(problem({ code }), 'templateId', code)
  }
  keepLanguageIn({ language: 'en', locale: 'en', texts: en })
  t.end()
})

t.test('what the check finds is shown at its step, the rest at the trigger', t => {
  const order = ['first', 'second']
  const found = { code: 'missing', severity: 'error' as const, message: 'has no templateId' }
  const problems = [
    { ...found, step_id: 's2', position: 1 },
    { ...found, code: 'invalid_trigger', step_id: null, position: null },
  ] as unknown as Parameters<typeof problemsIn>[0]
  t.same(
    problemsIn(problems, order).map(({ key }) => key),
    ['second', undefined],
  )
  const refused = { code: 'validation_error', message: 'is too long' }
  t.match(problemsOfRefusal({ ...refused, path: 'steps.1.config.subject' }, order), [
    { code: 'invalid_step', key: 'second' },
  ])
  t.match(problemsOfRefusal({ ...refused, path: 'trigger_config.tagName' }, order), [
    { code: 'invalid_trigger', key: undefined },
  ])
  t.match(problemsOfRefusal({ ...refused, path: undefined }, order), [{ code: 'invalid_trigger' }])
  t.equal(
    problemsOfRefusal({ code: 'network', message: 'no answer' }, order),
    undefined,
    'no answer is no problem of the flow',
  )
  t.end()
})
