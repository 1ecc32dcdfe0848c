/** A database that announces each statement before it runs, where a test can look or die. */
import type { DatabaseConnection, Dialect, Driver } from 'kysely'

/** @param before called with the statement; `begin`, `commit` and `rollback` are statements too */
export function watched(dialect: Dialect, before: (sql: string) => void): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: db => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver: () => watchedDriver(dialect.createDriver(), before),
  }
}

function watchedDriver(driver: Driver, before: (sql: string) => void): Driver {
  const real = new WeakMap<DatabaseConnection, DatabaseConnection>()
  const realOf = (connection: DatabaseConnection) => real.get(connection) ?? connection
  return {
    init: () => driver.init(),
    async acquireConnection() {
      const connection = await driver.acquireConnection()
      const watching: DatabaseConnection = {
        async executeQuery(query) {
          before(query.sql)
          return connection.executeQuery(query)
        },
        streamQuery: (query, size) => connection.streamQuery(query, size),
      }
      real.set(watching, connection)
      return watching
    },
    async beginTransaction(connection, settings) {
      before('begin')
      await driver.beginTransaction(realOf(connection), settings)
    },
    async commitTransaction(connection) {
      before('commit')
      await driver.commitTransaction(realOf(connection))
    },
    async rollbackTransaction(connection) {
      before('rollback')
      await driver.rollbackTransaction(realOf(connection))
    },
    releaseConnection: connection => driver.releaseConnection(realOf(connection)),
    destroy: () => driver.destroy(),
  }
}
