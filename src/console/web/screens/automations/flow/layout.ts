/**
 * Where the steps of a flow are drawn: from top to bottom, branches side by side, and what they lead to again below both. Pure.
 */
import {
  joinOf,
  pathsOf,
  reachableFrom,
  targetOf,
  type Flow,
  type PathName,
  type Target,
  type Way,
} from './graph'

export const STEP_WIDTH = 232
export const STEP_HEIGHT = 74
const END_HEIGHT = 28
const GAP_X = 36
const GAP_Y = 58
/** Below a branch there is a word on each way, and room for the ways to part. */
const BRANCH_GAP_Y = 84
/** Width of a branch without steps. */
const EMPTY_WIDTH = 120
const LANE = 26

export interface Point {
  readonly x: number
  readonly y: number
}

export interface PlacedNode extends Point {
  /** Of the step; `trigger`, or the key of an end. */
  readonly id: string
  readonly kind: 'trigger' | 'step' | 'end'
}

export interface PlacedWay {
  readonly id: string
  readonly way: Way
  readonly source: string
  readonly target: string
  /** Corners from the source to the target. */
  readonly points: readonly Point[]
  /** Where a step can be added. */
  readonly middle: Point
}

export interface Layout {
  readonly nodes: readonly PlacedNode[]
  readonly ways: readonly PlacedWay[]
}

interface Block {
  readonly key: string
  readonly branches: readonly Column[]
  readonly width: number
}

interface Column {
  /** The way that leads into it. */
  readonly way: Way
  readonly blocks: readonly Block[]
  readonly width: number
  /** Whether the last way ends the run. */
  readonly end: Way | undefined
}

/** Centre x and the top of each node. */
type Places = Map<string, { readonly x: number; readonly top: number; readonly bottom: number }>

export function layOut(flow: Flow): Layout {
  const placed = new Set<string>()
  const columns = [buildColumn(flow, { from: null, path: 'next' }, flow.first, new Set(), placed)]
  const lost = Object.keys(flow.steps).filter(key => !reachableFrom(flow, flow.first).has(key))
  for (const key of lost)
    if (!placed.has(key)) columns.push(buildColumn(flow, { from: key, path: 'next' }, key, new Set(), placed))

  const places: Places = new Map()
  const nodes: PlacedNode[] = []
  /** X of the column that a way runs down in. */
  const lanes = new Map<string, number>()
  const put = (id: string, kind: PlacedNode['kind'], x: number, top: number) => {
    const height = kind === 'end' ? END_HEIGHT : STEP_HEIGHT
    places.set(id, { x, top, bottom: top + height })
    nodes.push({ id, kind, x: x - (kind === 'end' ? EMPTY_WIDTH : STEP_WIDTH) / 2, y: top })
    return top + height
  }
  let left = 0
  for (const [at, column] of columns.entries()) {
    const x = left + column.width / 2
    const top = at === 0 ? put('trigger', 'trigger', x, 0) + GAP_Y : STEP_HEIGHT + GAP_Y
    placeColumn(column, x, top, put, lanes)
    left += column.width + GAP_X * 2
  }
  const rightEdge = left - GAP_X * 2
  let loops = 0
  const ways: PlacedWay[] = []
  const draw = (way: Way) => {
    const source = way.from ?? 'trigger'
    const to = targetOf(flow, way)
    const target = to ?? endId(way)
    const [from, goal] = [places.get(source), places.get(target)]
    if (!from || !goal) return
    const isBack = goal.top < from.bottom
    if (isBack) loops += 1
    const lane = isBack ? rightEdge + LANE * loops : (lanes.get(wayId(way)) ?? from.x)
    const points = pointsOf(from, goal, lane, isBack)
    ways.push({ id: wayId(way), way, source, target, points, middle: middleOf(points, isBack) })
  }
  draw({ from: null, path: 'next' })
  for (const step of Object.values(flow.steps))
    for (const path of pathsOf(step)) draw({ from: step.key, path })
  return { nodes, ways }
}

export const wayId = ({ from, path }: Way) => `${from ?? 'trigger'} ${path}`
export const endId = (way: Way) => `end ${wayId(way)}`

function buildColumn(
  flow: Flow,
  way: Way,
  start: Target,
  stops: ReadonlySet<string>,
  placed: Set<string>,
): Column {
  const blocks: Block[] = []
  let [key, last]: [Target, Way | undefined] = [start, way]
  while (key !== null && !stops.has(key) && !placed.has(key)) {
    const step = flow.steps[key]
    if (!step) break
    placed.add(key)
    const paths = pathsOf(step)
    const [one, other] = paths.map(path => step.out[path] ?? null)
    if (paths.length < 2) {
      blocks.push({ key, branches: [], width: STEP_WIDTH })
      last = paths[0] === undefined ? undefined : { from: key, path: paths[0] }
      key = one ?? null
      if (!last) break
      continue
    }
    const join = joinOf(flow, one ?? null, other ?? null, placed)
    const inner = join === null ? stops : new Set([...stops, join])
    const from = key
    const branches = paths.map((path: PathName) =>
      buildColumn(flow, { from, path }, step.out[path] ?? null, inner, placed),
    )
    const width = branches.reduce((sum, branch) => sum + branch.width, GAP_X)
    blocks.push({ key, branches, width: Math.max(STEP_WIDTH, width) })
    key = join
    last = undefined
  }
  const width = blocks.reduce(
    (most, block) => Math.max(most, block.width),
    blocks.length === 0 ? EMPTY_WIDTH : 0,
  )
  return { way, blocks, width, end: key === null ? last : undefined }
}

/** @returns where the column ends */
function placeColumn(
  { way, blocks, end }: Column,
  x: number,
  start: number,
  put: (id: string, kind: PlacedNode['kind'], x: number, top: number) => number,
  lanes: Map<string, number>,
): number {
  lanes.set(wayId(way), x)
  let top = start
  for (const { key, branches, width } of blocks) {
    const bottom = put(key, 'step', x, top)
    if (branches.length === 0) {
      top = bottom + GAP_Y
      continue
    }
    const inner = branches.reduce((sum, branch) => sum + branch.width, GAP_X)
    let left = x - width / 2 + (width - inner) / 2
    const bottoms = branches.map(branch => {
      const centre = left + branch.width / 2
      left += branch.width + GAP_X
      return placeColumn(branch, centre, bottom + BRANCH_GAP_Y, put, lanes)
    })
    top = Math.max(...bottoms)
  }
  if (!end) return top
  return put(endId(end), 'end', x, top) + GAP_Y
}

function pointsOf(
  from: { readonly x: number; readonly bottom: number },
  to: { readonly x: number; readonly top: number },
  lane: number,
  isBack: boolean,
): Point[] {
  const [start, end] = [
    { x: from.x, y: from.bottom },
    { x: to.x, y: to.top },
  ]
  const [below, above] = [from.bottom + 18, to.top - 18]
  const isStraight = !isBack && Math.abs(from.x - lane) < 1 && Math.abs(to.x - lane) < 1
  if (isStraight) return [start, end]
  return [
    start,
    { x: from.x, y: below },
    { x: lane, y: below },
    { x: lane, y: above },
    { x: to.x, y: above },
    end,
  ]
}

/** On the way's own column, where no other way runs. */
function middleOf(points: readonly Point[], isBack: boolean): Point {
  const [first, last] = [points[0], points.at(-1)]
  const [, , corner, next] = points
  if (!first || !last) return { x: 0, y: 0 }
  if (!corner || !next) return { x: first.x, y: (first.y + last.y) / 2 }
  return {
    x: corner.x,
    y: isBack ? (corner.y + next.y) / 2 : Math.min((corner.y + next.y) / 2 + 10, corner.y + 34),
  }
}

const RADIUS = 10

/** An SVG path with rounded corners. */
export function pathThrough(points: readonly Point[]): string {
  const [first, ...others] = points
  if (!first) return ''
  let path = `M ${first.x} ${first.y}`
  for (const [at, point] of others.entries()) {
    const before = points[at] ?? first
    const after = others[at + 1]
    if (!after) {
      path += ` L ${point.x} ${point.y}`
      continue
    }
    const radius = Math.min(RADIUS, distance(before, point) / 2, distance(point, after) / 2)
    const [into, out] = [toward(point, before, radius), toward(point, after, radius)]
    path += ` L ${into.x} ${into.y} Q ${point.x} ${point.y} ${out.x} ${out.y}`
  }
  return path
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y)
}

function toward(from: Point, to: Point, by: number): Point {
  const length = distance(from, to) || 1
  return { x: from.x + ((to.x - from.x) / length) * by, y: from.y + ((to.y - from.y) / length) * by }
}
