import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Testing

@Suite struct `A table of another name` {
    @Test func `is read and written through its mapping`() async throws {
        try await StoreFixture.with { fixture in
            let mapping = TableMapping(StoreFixture.store, schema: "shop", table: "od\"d", columns: ["city": "the city"])
            let shape = try TableShape(StoreFixture.store, in: StoreFixture.schema, mapping: mapping)
            _ = try await fixture.sql("CREATE SCHEMA shop")
            _ = try await fixture.sql(shape.definition)
            let rows = PostgresRowStore(pool: fixture.pool, waiting: fixture.pool, log: DurableLog(pool: fixture.pool)) { _ in shape }
            let key = Value.objectId(ObjectIdentifierBytes(high: 9, low: 9))
            _ = try await rows.transaction { transaction, _ in
                try transaction.write("Store", key: key, .insert(Row([key, .string("Oslo")])), clocks: .mark(1))
                try transaction.write("Store", key: key, .update([1: .string("Bergen")]), clocks: .mark(2))
            }
            #expect(try await fixture.sql("SELECT \"the city\" FROM shop.\"od\"\"d\"")[0, 0] == "Bergen")
            #expect(try await rows.transaction { try $0.load($1, "Store", keys: [key]) }.result[key]?.clocks == .mark(2))
        }
    }

    @Test func `cannot be had for an embedded class`() {
        let embedded = ObjectType(name: "Part", kind: .embedded, properties: [Property(id: 1, name: "a", type: .int)], primaryKey: nil)
        #expect(throws: SluiceError(.tableUnfit, "Class Part has no table: it has no primary key.")) {
            try TableShape(embedded, in: Schema([embedded]))
        }
    }
}
