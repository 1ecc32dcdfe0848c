/** The rows of the table "rule -> test". `contract.test.ts` checks them against the contract, the appliance and the tests. */

/** A test that shows the rule over HTTP on the running appliance. */
export interface TestName {
  /** Below `test/`, without `.test.ts`. */
  readonly file: string
  /** As written in the file; a template literal keeps its `${...}`. */
  readonly title: string
}

export interface Row {
  /** The rule in short; unique. */
  readonly rule: string
  /** Places of the contract that state it, named as `read-contract.ts` does; those of the other page begin with `decisions: `. */
  readonly from: readonly string[]
  /**
   * Error answers that the tests show: `OPERATION: code`, the operation being `POST /api/v1/domains` or a class of
   * `contract.test.ts`, for which the test walks over every operation in the appliance's own description.
   */
  readonly answers?: readonly string[]
  readonly tests: readonly TestName[]
  /** The group in `NOT_BUILT` without which the rule cannot be tested. */
  readonly waitsFor?: string
}

/** A number of the contract, with tests on both sides of it. */
export interface Limit {
  /** The place's name, or a short description if a page states it in prose. */
  readonly name: string
  readonly value: string
  /** Where the appliance describes it. */
  readonly schema?: readonly BoundInSchema[]
  readonly at: readonly TestName[]
  readonly past: readonly TestName[]
}

export interface BoundInSchema {
  /** E.g. `POST /api/v1/email/send`. */
  readonly operation: string
  /** Dotted path in the body or query, without list indexes: `messages.subject`. */
  readonly field: string
  readonly keyword: 'maxLength' | 'maxItems' | 'minItems' | 'minimum' | 'maximum' | 'default'
  readonly value: number
}

/** A part of the contract that no route serves yet. */
export interface NotBuilt {
  readonly name: string
  /** No operation of the appliance may begin with one of these; if one does, the group needs rows. */
  readonly paths: readonly string[]
  /** Sections of the contract that concern nothing else. */
  readonly sections: readonly string[]
  /** Single places in other sections. */
  readonly places: readonly string[]
}

/** @returns a function that names tests of the file by title */
export function inFile(file: string): (title: string) => TestName {
  return title => ({ file, title })
}
