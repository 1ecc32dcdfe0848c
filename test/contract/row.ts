/**
 * What a row of the table "rule -> test" is. The rows stand in the files `*-rows.ts`, one for each part of the contract;
 * `contract.test.ts` holds them to the contract, to the running appliance and to the tests that they name.
 */

/** A test that shows the rule over HTTP on the running appliance. */
export interface TestName {
  /** Below `test/`, without `.test.ts`. */
  readonly file: string
  /** As it stands in the file; where it is a template, with its `${...}`. */
  readonly title: string
  /** Of its assertions those on which all that it shows rests, as they stand in it. */
  readonly asserts: readonly string[]
}

export interface Row {
  readonly id: string
  /** The sentence, short. */
  readonly rule: string
  /** Places of the contract that say so, as `read-contract.ts` names them; `decisions: ` before those of the other page. */
  readonly from: readonly string[]
  /**
   * Error answers that the tests show, `WHO: code`. WHO is an operation (`POST /api/v1/domains`) or one of the classes in
   * `contract.test.ts`, for which the test walks over every operation of the appliance's own description.
   */
  readonly answers?: readonly string[]
  readonly tests: readonly TestName[]
  /**
   * The assertions that show the rule: pieces of their text, or of a table that they go over, each of which stands in what one
   * of the tests asserts. A row with `answers` may do without: their codes have to stand there anyway.
   */
  readonly asserts?: readonly string[]
  /** What of the rule cannot be seen before this group (`not-built.ts`) is built. */
  readonly waitsFor?: string
}

/** A number of the contract: one test keeps to it, one goes past it. */
export interface Limit {
  /** The place's name, or what a page says in prose. */
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
  /** Of the body or the query, dotted; entries of a list have no name of their own: `messages.subject`. */
  readonly field: string
  readonly keyword: 'maxLength' | 'maxItems' | 'minItems' | 'minimum' | 'maximum' | 'default'
  readonly value: number
}

/** A part of the contract that no route serves yet. */
export interface NotBuilt {
  readonly name: string
  readonly status: 'not built yet'
  /** No operation of the appliance may begin with one of these; where one does, the group needs rows. */
  readonly paths: readonly string[]
  /** Sections of the contract that are about nothing else. */
  readonly sections: readonly string[]
  /** Single places in other sections. */
  readonly places: readonly string[]
}

/** Tests of one file by title, with what of each is named by whoever names the test. */
export function inFile(file: string): (title: string, ...asserts: string[]) => TestName {
  return (title, ...asserts) => ({ file, title, asserts })
}
