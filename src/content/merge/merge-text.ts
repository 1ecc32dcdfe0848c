/**
 * A text of a mail whose merge tags are parsed at most once, however many steps of its acceptance need them.
 *
 * Made where a text enters (a request, a template, a step of an automation) and passed on in place of the source. What is stored is the
 * source: the delivery threads parse it once per content (`rendering/plan-cache.ts`).
 */
import { AppError } from '../../core/errors.js'
import { MergeError, type MergePlace, type MergeTemplate } from './merge-tree.js'
import { hasTags, templateOf } from './parse-template.js'

export class MergeText {
  readonly source: string
  readonly place: MergePlace
  private parsed: MergeTemplate | undefined
  private isKnownValid: boolean

  /** @param isValid it was parsed before, as templates are when they are saved, or in a thread */
  constructor(source: string, place: MergePlace, isValid = false) {
    this.source = source
    this.place = place
    this.isKnownValid = isValid
  }

  get hasTags(): boolean {
    return hasTags(this.source)
  }

  /** Whether its syntax was checked and is correct. */
  get isValid(): boolean {
    return this.isKnownValid
  }

  /** @throws MergeError */
  get template(): MergeTemplate {
    return (this.parsed ??= templateOf(this.source, this.place))
  }

  /** After a thread has parsed it; the parse stays there. */
  markValid(): void {
    this.isKnownValid = true
  }

  /** @param path of the field that holds it @throws AppError validation_error, with line and column */
  requireValid(path: string): void {
    if (this.isKnownValid) return
    try {
      void this.template
    } catch (error) {
      throw error instanceof MergeError ? mergeFault(error, path) : error
    }
    this.isKnownValid = true
  }
}

/** @param path of the field that holds it @throws AppError validation_error, with line and column */
export function validText(source: string, place: MergePlace, path: string): MergeText {
  const text = new MergeText(source, place)
  text.requireValid(path)
  return text
}

export function mergeFault({ message }: Pick<MergeError, 'message'>, path: string): AppError {
  return new AppError('validation_error', `${path}: ${message}`, { path })
}

/** UTF-16 units of the sources whose parses are kept; a parse takes about six times as many octets. */
const MAX_UNITS = 1_048_576

/** Texts that several messages of a request share, each parsed once. */
export class MergeTextCache {
  private readonly kept = new Map<string, MergeText>()
  private readonly valid = new Set<string>()
  private units = 0

  get(source: string, place: MergePlace): MergeText {
    if (!hasTags(source)) return new MergeText(source, place)
    const name = `${place} ${source}`
    const known = this.kept.get(name)
    if (known) return known
    const text = new MergeText(source, place, this.valid.has(name))
    this.kept.set(name, text)
    this.units += source.length
    this.evict()
    return text
  }

  /** Keeps in mind which were valid. */
  private evict(): void {
    for (const [name, { source, isValid }] of this.kept) {
      if (this.units <= MAX_UNITS) break
      this.kept.delete(name)
      this.units -= source.length
      if (isValid) this.valid.add(name)
    }
  }
}
