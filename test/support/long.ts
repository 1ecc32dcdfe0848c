/**
 * How often what is tried again and again is tried: rounds of kills, random requests and stories, rows of a long queue.
 *
 * `make test` tries enough of each to find what fails often, `make test-long`, which CI runs as well, all that was ever asked of it. It
 * runs the files that import this one.
 */

/** @param long at least as much as `usual`, and all of that in it */
export function often(usual: number, long: number): number {
  return process.env['POSTROAD_TEST_LONG'] === '1' ? long : usual
}
