/**
 * How often what is tried again and again is tried: rounds of kills, random requests and stories, rows of a long queue.
 *
 * `make test` tries enough of each to find what fails often. `make test-long` runs the files that import this one with all that was ever asked
 * of them; so does `.ci/run`, in place of the short form.
 */

/** @param long at least as much as `usual`, and all of that in it */
export function often(usual: number, long: number): number {
  return process.env['POSTROAD_TEST_LONG'] === '1' ? long : usual
}
