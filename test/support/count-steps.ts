/**
 * Counts how much work a function does, the same on any machine: to show that hostile input takes linear time without measuring time.
 *
 * While it runs, regular expressions are matched here by backtracking, as V8 does it, and every character tried is a step; so is every
 * character that a search in a string passes. `assertLinear` compares the steps of an input with those of one twice as long.
 */
import { RegExpParser, type AST } from '@eslint-community/regexpp'
import type { Test } from 'tap'

/** Linear work doubles, quadratic work becomes four times as much. */
const MOST_FOR_TWICE_AS_LONG = 2.5

/** @param work takes an input of which everything is repeated `count` times */
export function assertLinear(t: Test, work: (count: number) => unknown, count: number, what: string): void {
  const [once, twice] = [countSteps(() => work(count)), countSteps(() => work(2 * count))]
  t.ok(once >= count, `${what}: ${once} steps at least read the input`)
  t.ok(twice <= MOST_FOR_TWICE_AS_LONG * once, `${what}: ${once} steps, ${twice} for twice as long`)
}

/** Octets of hostile input. */
const LENGTHS = [1_000, 10_000, 100_000]
const MAX_STEPS_PER_CHARACTER = 100

/**
 * Asserts that 1, 10 and 100 KB are read in a bounded number of steps per character. Work that takes more is ended there, so that
 * quadratic or exponential work fails at once.
 *
 * @param work takes an input of about this length; errors it throws count as its result
 */
export function assertBoundedSteps(t: Test, work: (length: number) => unknown): void {
  for (const length of LENGTHS) {
    const most = MAX_STEPS_PER_CHARACTER * length
    const taken = countSteps(() => work(length), most)
    t.ok(taken <= most, `${length} characters in ${taken} steps`)
    if (taken > most) return
  }
}

/** Ends work that takes too many steps. */
class TooManySteps extends Error {}

/* eslint-disable @typescript-eslint/unbound-method -- called with their `this`, and put back */
const { exec } = RegExp.prototype
const { indexOf, includes, lastIndexOf } = String.prototype
/* eslint-enable @typescript-eslint/unbound-method */
let steps = 0
let mostSteps = Infinity

function addSteps(count: number): void {
  steps += count
  if (steps > mostSteps) throw new TooManySteps()
}

/** @param most ends the work, which then counts as one step more; errors of other work are thrown if there is no bound */
export function countSteps(work: () => unknown, most = Infinity): number {
  steps = 0
  mostSteps = most
  RegExp.prototype.exec = countingExec
  String.prototype.indexOf = function (this: string, searched, from = 0) {
    const at = indexOf.call(this, searched, from)
    addSteps(1 + (at < 0 ? this.length : at) - Math.min(Math.max(from, 0), this.length))
    return at
  }
  String.prototype.lastIndexOf = function (this: string, searched, from = this.length) {
    const at = lastIndexOf.call(this, searched, from)
    addSteps(1 + Math.min(Math.max(from, 0), this.length) - Math.max(at, 0))
    return at
  }
  String.prototype.includes = function (this: string, searched, from = 0) {
    return this.indexOf(searched, from) >= 0
  }
  try {
    work()
  } catch (error) {
    // An overflow of the stack is one of this matcher, which recurses where the engine does not.
    if (most === Infinity || error instanceof RangeError) throw error
  } finally {
    RegExp.prototype.exec = exec
    String.prototype.indexOf = indexOf
    String.prototype.includes = includes
    String.prototype.lastIndexOf = lastIndexOf
    mostSteps = Infinity
  }
  return steps
}

/** As the real one, which is asked as well: the steps of a matcher that finds something else count for nothing. */
function countingExec(this: RegExp, text: string): RegExpExecArray | null {
  RegExp.prototype.exec = exec
  try {
    return countedExec(this, text)
  } finally {
    RegExp.prototype.exec = countingExec
  }
}

function countedExec(expression: RegExp, text: string): RegExpExecArray | null {
  const from = expression.global || expression.sticky ? expression.lastIndex : 0
  const match = programOf(expression)
  let start = from
  const last = expression.sticky ? from : text.length
  while (start <= last && !match(text, start)) start += 1
  const found = start <= last ? start : undefined
  // After the count, which ends what the engine would not.
  const real = exec.call(expression, text)
  if (from <= text.length && found !== real?.index)
    throw new Error(
      `${String(expression)} is matched at ${String(real?.index)}, and was at ${String(found)} here`,
    )
  return real
}

type Match = (text: string, at: number) => boolean
const programs = new Map<string, Match>()

function programOf(expression: RegExp): Match {
  const key = String(expression)
  const known = programs.get(key)
  if (known) return known
  const { source, flags } = expression
  const pattern = new RegExpParser().parsePattern(source, 0, source.length, {
    unicode: flags.includes('u'),
    unicodeSets: flags.includes('v'),
  })
  const program = compile(pattern, flags.replace(/[gyd]/g, ''))
  programs.set(key, program)
  return program
}

/** Matches from `at` and calls `next` with each possible end until it accepts one. */
type Step = (at: number, next: (end: number) => boolean) => boolean

const END: Step = (at, next) => next(at)

function followedBy(first: Step, second: Step): Step {
  return (at, next) => first(at, end => second(end, next))
}

/** @param flags without those that concern where a match may begin */
function compile(pattern: AST.Pattern, flags: string): Match {
  let text = ''
  const captured = new Map<AST.CapturingGroup, string>()
  const isUnicode = /[uv]/.test(flags)

  const anyOf = (alternatives: readonly AST.Alternative[]): Step => {
    const all = alternatives.map(({ elements }) =>
      elements.map(step).reduceRight((rest, one) => followedBy(one, rest), END),
    )
    return (at, next) => all.some(one => one(at, next))
  }

  function step(node: AST.Element): Step {
    switch (node.type) {
      case 'Group':
        return anyOf(node.alternatives)
      case 'CapturingGroup':
        return capture(node)
      case 'Quantifier':
        return isOneCharacter(node.element) ? repeatCharacter(node, character(node.element)) : repeat(node)
      case 'Assertion':
        return assertion(node)
      case 'Backreference':
        return (at, next) => {
          const again = captured.get(node.resolved as AST.CapturingGroup) ?? ''
          addSteps(again.length)
          return text.startsWith(again, at) && next(at + again.length)
        }
      default: {
        const isOne = character(node)
        return (at, next) => {
          const end = isOne(at)
          return end > at && next(end)
        }
      }
    }
  }

  function capture(node: AST.CapturingGroup): Step {
    const inner = anyOf(node.alternatives)
    return (at, next) => {
      const before = captured.get(node)
      const isMatch = inner(at, end => {
        captured.set(node, text.slice(at, end))
        return next(end)
      })
      if (!isMatch && before !== undefined) captured.set(node, before)
      return isMatch
    }
  }

  /** @returns a function from an index to the one after the character there, or to the same if that does not match */
  function character({ raw }: { readonly raw: string }): (at: number) => number {
    const one = new RegExp(`^(?:${raw})$`, flags.replace('m', ''))
    const known = new Map<string, boolean>()
    return at => {
      addSteps(1)
      if (at >= text.length) return at
      const found = isUnicode ? String.fromCodePoint(text.codePointAt(at) ?? 0) : text.charAt(at)
      let isMatch = known.get(found)
      if (isMatch === undefined) known.set(found, (isMatch = exec.call(one, found) !== null))
      return isMatch ? at + found.length : at
    }
  }

  function repeatCharacter({ min, max, greedy }: AST.Quantifier, isOne: (at: number) => number): Step {
    return (at, next) => {
      const ends = [at]
      const more = () => {
        const last = ends.at(-1) ?? at
        const end = ends.length <= max ? isOne(last) : last
        if (end > last) ends.push(end)
        return end > last
      }
      while (ends.length <= min) if (!more()) return false
      if (!greedy) {
        for (;;) {
          if (next(ends.at(-1) ?? at)) return true
          if (!more()) return false
        }
      }
      while (more());
      while (ends.length > min) {
        if (next(ends.at(-1) ?? at)) return true
        ends.pop()
        addSteps(1)
      }
      return false
    }
  }

  function repeat({ min, max, greedy, element }: AST.Quantifier): Step {
    const inner = step(element)
    const from = (count: number, at: number, next: (end: number) => boolean): boolean => {
      const again = () =>
        count < max && inner(at, end => (end > at || count < min) && from(count + 1, end, next))
      if (count < min) return again()
      return greedy ? again() || next(at) : next(at) || again()
    }
    return (at, next) => from(0, at, next)
  }

  function assertion(node: AST.Assertion): Step {
    if (node.kind === 'lookahead' || node.kind === 'lookbehind') {
      const inner = anyOf(node.alternatives)
      const longest = Math.max(...node.alternatives.map(({ elements }) => sum(elements.map(longestOf))))
      const holds = (at: number) => {
        if (node.kind === 'lookahead') return inner(at, () => true)
        for (let start = at; start >= Math.max(0, at - longest); start -= 1)
          if (inner(start, end => end === at)) return true
        return false
      }
      return (at, next) => holds(at) !== node.negate && next(at)
    }
    const one = new RegExp(node.raw, `${flags.replace(/[uv]/, '')}y`)
    return (at, next) => {
      addSteps(1)
      one.lastIndex = at
      return exec.call(one, text) !== null && next(at)
    }
  }

  const root = anyOf(pattern.alternatives)
  return (whole, at) => {
    text = whole
    captured.clear()
    return root(at, () => true)
  }
}

function isOneCharacter({ type }: AST.Element): boolean {
  return type === 'Character' || type === 'CharacterClass' || type === 'CharacterSet'
}

/** Characters that the element can match at most. */
function longestOf(element: AST.Element): number {
  switch (element.type) {
    case 'Group':
    case 'CapturingGroup':
      return Math.max(...element.alternatives.map(({ elements }) => sum(elements.map(longestOf))))
    case 'Quantifier':
      return element.max === 0 ? 0 : element.max * longestOf(element.element)
    case 'Assertion':
      return 0
    case 'Backreference':
      return Infinity
    default:
      return 2
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
