import SluiceCore
import SluiceIdentity
import SluiceValues
import Testing

@Suite struct `A database trigger` {
    private static let before: [JSON.Member] = [
        .init("_id", "o1"), .init("status", "open"), .init("total", 5), .init("tags", ["new"]), .init("paid", .null),
        .init("at", .null), .init("price", .null), .init("items", []), .init("owner", .null),
    ]
    private static let after: [JSON.Member] = [
        .init("_id", "o1"), .init("status", "done"), .init("total", 7.5), .init("tags", ["new", "big"]), .init("paid", .null),
        .init("at", ["$date": "2026-11-29T10:00:00Z"]), .init("price", ["$numberDecimal": "10.50"]),
        .init("items", [["sku": "a", "count": 2], ["sku": "b", "count": ["$numberLong": "9007199254740993"]], ["count": 1]]),
        .init("owner", ["$oid": "0123456789ABCDEF01234567"]),
    ]

    private static func event(_ operation: ChangeEvent.Operation) -> ChangeEvent {
        ChangeEvent(
            operation, at: Position(lsn: LSN(rawValue: 0x16_B374_D848), ordinal: 3), microseconds: 1_700_000_000_123_456, key: "o1",
            before: operation == .insert ? nil : before, after: operation == .delete ? nil : after)
    }

    private static func trigger(_ full: Bool = true, _ pre: Bool = true) -> DatabaseTrigger {
        var shape = ChangeEventShape(database: "shop", collection: "orders")
        (shape.hasFullDocument, shape.hasPreImage) = (full, pre)
        return DatabaseTrigger("onOrder", on: "Order", Set(ChangeEvent.Operation.allCases), function: "f", shape: shape)
    }

    @Test func `calls its function with App Services' event, under one id for all attempts`() throws {
        let call = try #require(Self.trigger().call(for: Self.event(.update)))
        #expect(call.name == "f" && call.caller == .system && call.id == "change-16/B374D848+3-onOrder")
        let event = try #require(call.arguments.first)
        #expect(call.arguments.count == 1 && event["_id"] == ["_data": "16/B374D848+3"])
        #expect(event["operationType"] == "update" && event["documentKey"] == ["_id": "o1"])
        #expect(event["ns"] == ["db": "shop", "coll": "orders"])
        #expect(event["clusterTime"] == ["$timestamp": ["t": 1_700_000_000, "i": 1]])
        #expect(event["wallTime"] == ["$date": "2023-11-14T22:13:20.123Z"])
        #expect(event["fullDocument"] == .object(Self.after) && event["fullDocumentBeforeChange"] == .object(Self.before))
        let changed = Self.after.filter { !["_id", "paid"].contains($0.key) }
        #expect(event["updateDescription"] == ["updatedFields": .object(changed), "removedFields": []])
    }

    @Test func `has the rows that it asks for`() {
        func parts(_ operation: ChangeEvent.Operation, _ full: Bool, _ pre: Bool) -> [Bool] {
            let event = Self.trigger(full, pre).call(for: Self.event(operation))?.arguments.first
            return [event?["fullDocument"] != nil, event?["fullDocumentBeforeChange"] != nil, event?["updateDescription"] != nil]
        }
        #expect(parts(.insert, false, true) == [true, false, false])
        #expect(parts(.update, false, false) == [false, false, true] && parts(.update, true, true) == [true, true, true])
        #expect(parts(.delete, true, true) == [false, true, false] && parts(.delete, true, false) == [false, false, false])
    }

    @Test func `is for its operations, and for updates that change something`() {
        var trigger = Self.trigger()
        trigger.operations = [.insert, .update]
        #expect(trigger.call(for: Self.event(.insert)) != nil && trigger.call(for: Self.event(.delete)) == nil)
        var void = Self.event(.update)
        void.after = void.before
        #expect(trigger.call(for: void) == nil)
    }

    private static func matches(_ text: String, _ operation: ChangeEvent.Operation = .update) throws -> Bool {
        var trigger = Self.trigger()
        trigger.match = try Condition(filter: try JSON.parse(text))
        return trigger.call(for: Self.event(operation)) != nil
    }

    @Test(arguments: [
        "{}", #"{"fullDocument.status": "done"}"#, #"{"updateDescription.updatedFields.status": {"$exists": true}}"#,
        #"{"updateDescription.updatedFields.paid": {"$exists": false}}"#, #"{"fullDocument.total": {"$gt": 5, "$lte": 7.5}}"#,
        #"{"fullDocument.total": {"$not": {"$gt": 8}}}"#, #"{"fullDocument.status": {"$not": {"$gt": 8}}}"#,
        #"{"fullDocument.nothing": {"$ne": 1}}"#, #"{"fullDocument.nothing": null}"#, #"{"fullDocument.paid": null}"#,
        #"{"fullDocument.tags": "big"}"#, #"{"fullDocument.tags": ["new", "big"]}"#, #"{"fullDocument.tags": {"$in": ["big", "red"]}}"#,
        #"{"fullDocument.tags": {"$nin": ["red"]}}"#, #"{"fullDocument.at": {"$gte": {"$date": "2026-11-29T10:00:00.000Z"}}}"#,
        #"{"fullDocument.at": {"$lt": {"$date": {"$numberLong": "1800000000000"}}}}"#,
        #"{"fullDocument.price": 10.5}"#, #"{"fullDocument.price": {"$lt": {"$numberDecimal": "10.51"}}}"#,
        #"{"fullDocument.price": {"$gt": 10}}"#, #"{"fullDocument.items.sku": "b"}"#, #"{"fullDocument.items.1.sku": "b"}"#,
        #"{"fullDocument.items.sku": null}"#, #"{"fullDocument.items.count": {"$gt": 9007199254740992}}"#,
        #"{"fullDocument.owner": {"$oid": "0123456789abcdef01234567"}}"#,
        #"{"operationType": {"$in": ["insert", "update"]}, "documentKey._id": "o1", "ns.coll": "orders"}"#,
        #"{"$or": [{"fullDocument.status": "open"}, {"$and": [{"fullDocument.total": 7.5}]}]}"#,
        #"{"$nor": [{"fullDocument.status": "open"}, {"fullDocument.total": 1}]}"#,
        #"{"$expr": {"$ne": ["$fullDocument.status", "$fullDocumentBeforeChange.status"]}}"#,
        #"{"$expr": {"$eq": ["$fullDocument.paid", "$fullDocumentBeforeChange.paid"]}}"#,
        #"{"$expr": {"$and": [{"$eq": ["$fullDocument.status", "done"]}, {"$not": [{"$eq": ["$fullDocument.nothing", null]}]}]}}"#,
    ])
    func `matches as MongoDB does`(text: String) throws { #expect(try Self.matches(text), "\(text)") }

    @Test(arguments: [
        #"{"fullDocument.status": "open"}"#, #"{"updateDescription.updatedFields.paid": {"$exists": true}}"#,
        #"{"fullDocument.total": {"$gt": "5"}}"#, #"{"fullDocument.status": {"$gt": 5}}"#, #"{"fullDocument.nothing": {"$lt": 5}}"#,
        #"{"fullDocument.tags": {"$ne": "new"}}"#, #"{"fullDocument.tags": {"$nin": ["new", "x"]}}"#, #"{"fullDocument.tags": ["big"]}"#,
        #"{"fullDocument.items": "a"}"#, #"{"fullDocument.owner.x": {"$exists": true}}"#, #"{"fullDocument.price": "10.50"}"#,
        #"{"fullDocument.items.count": {"$gt": 9007199254740993}}"#, #"{"$or": []}"#, #"{"fullDocument.total": {"$in": []}}"#,
        #"{"$expr": {"$eq": ["$fullDocument.status", "$fullDocumentBeforeChange.status"]}}"#,
        // A list is no element of its own, and an absent value is no null there.
        #"{"$expr": {"$eq": ["$fullDocument.tags", "new"]}}"#, #"{"$expr": {"$eq": ["$fullDocument.nothing", null]}}"#,
    ])
    func `does not match otherwise`(text: String) throws { #expect(try !Self.matches(text), "\(text)") }

    @Test func `compares a row before with one after that is absent`() throws {
        let text = #"{"$expr": {"$ne": ["$fullDocument.status", "$fullDocumentBeforeChange.status"]}}"#
        #expect(try Self.matches(text, .insert) && Self.matches(text, .delete))
        #expect(try !Self.matches(#"{"fullDocument.status": "done"}"#, .delete))
    }

    @Test(arguments: [
        ("[]", "[]"), (#"{"status": "done"}"#, "status"), (#"{"fullDocument.status": {"$regex": "^d"}}"#, "$regex"),
        (#"{"fullDocument": {"status": "done"}}"#, "status"), (#"{"fullDocument.a": {"$elemMatch": {"b": 1}}}"#, "$elemMatch"),
        (#"{"fullDocument.a": {"$size": 1}}"#, "$size"), (#"{"fullDocument.a": {"$type": "string"}}"#, "$type"),
        (#"{"fullDocument.a": {"$gt": null}}"#, "null"), (#"{"fullDocument.a": {"$gt": [1]}}"#, "[1]"),
        (#"{"fullDocument.a": {"$eq": {"b": 1}}}"#, "b"), (#"{"fullDocument.a": {"$in": [{"b": 1}]}}"#, #"[{"b":1}]"#),
        (#"{"fullDocument.a": "%%user.id"}"#, "%%user.id"), (#"{"fullDocument.a.$oid": "0"}"#, "fullDocument.a.$oid"),
        (#"{"$where": "1"}"#, "$where"), (#"{"$expr": {"$gt": ["$fullDocument.a", 1]}}"#, "$gt"),
        (#"{"$expr": {"$eq": ["$$ROOT", 1]}}"#, "$$ROOT"), (#"{"$expr": {"$eq": [{"$size": "$a"}, 1]}}"#, #"{"$size":"$a"}"#),
        (#"{"$expr": {"$eq": ["$other.a", 1]}}"#, "other.a"), (#"{"clusterTime": 1}"#, "clusterTime"),
    ])
    func `has no filter that would be evaluated otherwise`(text: String, part: String) throws {
        let json = try JSON.parse(text)
        let error = #expect(throws: Condition.Unsupported.self) { try Condition(filter: json) }
        #expect(error?.part.contains(part) == true, "\(error?.part ?? "")")
    }

    @Test(arguments: [
        (#"{"operationType": 1, "fullDocument.status": 1}"#, #"{"_id":1,"operationType":"u","fullDocument":{"status":"done"}}"#),
        (#"{"_id": 0, "fullDocument": {"items": {"sku": true}}}"#, #"{"fullDocument":{"items":[{"sku":"a"},{}]}}"#),
        (
            #"{"fullDocument.items.sku": 0, "operationType": false}"#,
            #"{"_id":1,"fullDocument":{"status":"done","items":[{"n":1},{"n":2}],"at":{"$date":"2026-11-29T10:00:00Z"}}}"#
        ),
        (#"{"_id": 0}"#, nil), (#"{"_id": {"$numberInt": "1"}}"#, #"{"_id":1}"#),
        (#"{"fullDocument.at.x": 1, "_id": 0}"#, #"{"fullDocument":{}}"#),
    ])
    func `projects its event`(text: String, expected: String?) throws {
        let event = try JSON.parse(
            """
            {
                "_id": 1, "operationType": "u",
                "fullDocument": {
                    "status": "done", "items": [{ "sku": "a", "n": 1 }, { "n": 2 }], "at": { "$date": "2026-11-29T10:00:00Z" }
                }
            }
            """)
        let without = JSON.object((event.members ?? []).filter { $0.key != "_id" })
        let projected = try ChangeProjection(try JSON.parse(text)).apply(event)
        #expect(try projected == expected.map { try JSON.parse($0) } ?? without, "\(projected.text)")
    }

    @Test(arguments: [
        #"{"a": 1, "b": 0}"#, #"{"a": "$b"}"#, #"{"a": {"$slice": 1}}"#, #"{"a": 1, "a.b": 1}"#, #"{"a.b": 0, "a": 0}"#, "[]",
        #"{"a": {}}"#,
    ])
    func `has no projection that would be evaluated otherwise`(text: String) throws {
        let json = try JSON.parse(text)
        #expect(throws: Condition.Unsupported.self) { try ChangeProjection(json) }
    }
}
