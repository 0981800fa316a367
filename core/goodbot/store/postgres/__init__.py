# SPDX-License-Identifier: Apache-2.0
"""The store on PostgreSQL, for who wants failover, or the data on another host; chosen by `[store] url`.

There is one SQL, that of SQLite, and one schema, that of its migrations. `dialect` puts a statement into
the words of PostgreSQL, `ddl` does so with the tables, and `functions.sql` has the functions that SQLite
brings along. What a connection offers (`connection`) is what the queries of the store use of SQLite's, so
that they are the same functions. `opened` is the store itself.
"""
