/**
 * The process environment: the one place that reads it.
 *
 * Called by the command line, which hands it to `loadConfig`; everything else gets a `Config`.
 */

export type Environment = Readonly<Record<string, string | undefined>>

export const environment: Environment = process.env

/** @returns the configuration file: as given on the command line, else $POSTROAD_CONFIG, else the packaged place */
export function chooseConfigFile(given: string | undefined, env: Environment): string {
  // An empty variable is what a unit file leaves behind for "not set".
  return given ?? (env['POSTROAD_CONFIG'] || '/etc/postroad/postroad.toml')
}
