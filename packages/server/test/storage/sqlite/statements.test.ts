import Database from 'better-sqlite3'
import { migrate } from '../../../src/storage/sqlite/migrate.ts'
import { sqliteSql } from '../../../src/storage/sqlite/database.ts'
import { statementsSuite } from '../suite/engine/statements.ts'

const db = new Database(':memory:')
migrate(db)
const sql = sqliteSql(db)

statementsSuite(() => sql)
