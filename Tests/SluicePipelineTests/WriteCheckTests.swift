import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import Testing

@testable import SluicePipeline

/// The causes for which a write is undone, one by one; what becomes of it then, `WriteScenarios` of the gateway's tests show.
@Suite struct `A write is undone` {
    private static let type = order(key: .string)

    private static func order(key: PropertyType) -> ObjectType {
        ObjectType(
            name: "Order",
            properties: [
                Property(id: 1, name: "_id", type: key), Property(id: 2, name: "store", type: .string),
                Property(id: 3, name: "title", type: .string), Property(id: 4, name: "size", type: .int),
            ])
    }

    private static func row(_ store: String, title: String = "t", size: Int64 = 1, key: Value = .string("k")) -> Row {
        Row([key, .string(store), .string(title), .int(size)])
    }

    private static let all = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "clerk")

    /// - Returns: the reason; nil when the write is allowed.
    private static func reason(
        _ operation: SluiceCore.Operation, _ before: Row?, _ after: Row?, view: String? = "store == 'north'", plan: TypePlan = all,
        type: ObjectType = type, key: Value = .string("k")
    ) throws -> String? {
        try refusal(operation, before, after, view: view, plan: plan, type: type, key: key)?.message
    }

    private static func refusal(
        _ operation: SluiceCore.Operation, _ before: Row?, _ after: Row?, view: String? = "store == 'north'", plan: TypePlan = all,
        type: ObjectType = type, key: Value = .string("k"), named: [String]? = nil,
        creation: IntendedWrite.Creation? = nil
    ) throws -> WriteCheck.Rejection? {
        let check = try check(view: view, plan: plan, type: type)
        let changed = Set(type.properties.indices.filter { (before?[$0] ?? .null) != (after?[$0] ?? .null) && $0 != 0 })
        let refusal = check.refusal(
            IntendedWrite(
                object: ObjectKey(type: "Order", key: key), type: type, operation: operation, before: before, after: after,
                changed: changed, named: named.map { Set($0.compactMap { type.index(of: $0) }) } ?? changed,
                creation: creation ?? (operation == .insert ? .made : .none)))
        #expect(refusal == nil || refusal?.code == .compensatingWrite)
        return refusal
    }

    private static func check(view: String?, plan: TypePlan, type: ObjectType = type) throws -> WriteCheck {
        let schema = AppSchema(
            version: 1, schema: Schema([type]), fields: QueryableFields(byType: ["Order": ["store", "size"]], indexed: "store"),
            isDevelopment: false)
        let types = try view.map { text in
            [TypeView(type: 0, predicate: try Query.parse(text).predicate(on: type, in: schema.schema), mask: nil)]
        }
        return WriteCheck(
            permissions: SessionPermissions(SessionPlan(types: ["Order": plan]), schema: schema),
            view: View(version: 1, types: types ?? [], partitions: []), types: ["Order"])
    }

    /// A user could ask for keys by writing to them.
    @Test(arguments: ["store == 'north'", nil]) func `in the same words whether the key is free or not, if the user may not create`(
        view: String?
    ) throws {
        let reader = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: false, role: "reader")
        let key = ObjectKey(type: "Order", key: .string("k"))
        let (free, hidden) = (try Self.check(view: view, plan: reader), Self.row("south"))
        let edit = try Self.refusal(.update, hidden, Self.row("south", size: 7), view: view, plan: reader)
        let delete = try Self.refusal(.delete, hidden, nil, view: view, plan: reader)
        for answer in [edit, delete] {
            let refusal = try #require(answer)
            let missing = try #require(free.refusal(ofMissing: key, isCreation: false))
            #expect(missing.message == refusal.message && missing.cause == refusal.cause && missing.code == refusal.code)
            #expect(missing.fields == refusal.fields)
        }
        let create = try #require(try Self.refusal(.insert, nil, Self.row("north"), view: view, plan: reader))
        let again = try #require(
            try Self.refusal(.update, hidden, Self.row("north"), view: view, plan: reader, creation: .unseen))
        #expect(create.message == again.message && create.cause == again.cause && create.fields == again.fields)
        // Who may create learns of a free key anyway, and an edit of a deleted object needs no answer.
        #expect(try Self.check(view: view, plan: Self.all).refusal(ofMissing: key, isCreation: false) == nil)
    }

    @Test func `with the role and the clause for operators, and not for the user`() throws {
        let filtered = TypePlan(read: "TRUEPREDICATE", write: "size < 10 AND title != \"x\"", insert: false, role: "clerk")
        func rule(_ operation: SluiceCore.Operation, _ before: Row?, _ after: Row?, _ plan: TypePlan = filtered) throws -> String? {
            let refusal = try Self.refusal(operation, before, after, plan: plan)
            #expect(refusal?.message.contains("size") != true)
            return refusal?.rule
        }
        #expect(
            try rule(.update, Self.row("north"), Self.row("north", size: 50)) == "role clerk, write, not met: size < 10")
        #expect(try rule(.insert, nil, Self.row("north")) == "role clerk, insert")
        let fields = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", fields: FieldRights(writable: ["size"]), role: "clerk")
        #expect(
            try rule(.update, Self.row("north"), Self.row("north", title: "new"), fields) == "role clerk, writable fields without title")
        #expect(try rule(.insert, nil, Self.row("south"), Self.all) == "the view, not met: store == \"north\"")
    }

    @Test func `not at all when view and rules allow it`() throws {
        #expect(try Self.reason(.insert, nil, Self.row("north")) == nil)
        #expect(try Self.reason(.update, Self.row("north"), Self.row("north", title: "new")) == nil)
        #expect(try Self.reason(.delete, Self.row("north"), nil) == nil)
    }

    @Test func `CW-1 of a class without a subscription`() throws {
        #expect(
            try Self.reason(.insert, nil, Self.row("north"), view: nil)
                == "No subscription is open for class Order; the write to Order \"k\" was undone.")
    }

    @Test func `CW-2 that makes an object out of the view`() throws {
        #expect(
            try Self.reason(.insert, nil, Self.row("south")) == "Order \"k\" is outside of the current query view; the write was undone.")
    }

    @Test func `CW-3 that changes or deletes an object out of the view`() throws {
        let reason = "Order \"k\" is outside of the current query view; the write was undone."
        #expect(try Self.reason(.update, Self.row("south"), Self.row("south", size: 2)) == reason)
        #expect(try Self.reason(.delete, Self.row("south"), nil) == reason)
        // One that it takes out of the view was in it.
        #expect(try Self.reason(.update, Self.row("north"), Self.row("north", size: 20), view: "store == 'north' AND size < 10") == nil)
    }

    @Test func `CW-4 that the role may not make: the object, the field, the creation, the deletion`() throws {
        let filtered = TypePlan(read: "TRUEPREDICATE", write: "size < 10", role: "clerk")
        let denied = "Not allowed to write Order \"k\"; the write was undone."
        #expect(try Self.reason(.update, Self.row("north", size: 50), Self.row("north", size: 5), plan: filtered) == denied)
        #expect(try Self.reason(.delete, Self.row("north", size: 50), nil, plan: filtered) == denied)
        let fields = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", fields: FieldRights(writable: ["size"]), role: "clerk")
        #expect(
            try Self.reason(.update, Self.row("north"), Self.row("north", title: "new"), plan: fields)
                == "Not allowed to write field title of Order \"k\"; the write was undone.")
        #expect(try Self.reason(.update, Self.row("north"), Self.row("north", size: 2), plan: fields) == nil)
        let neither = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: false, delete: false, role: "clerk")
        #expect(
            try Self.reason(.insert, nil, Self.row("north"), plan: neither)
                == "Not allowed to create Order \"k\"; the write was undone.")
        #expect(
            try Self.reason(.delete, Self.row("north"), nil, plan: neither)
                == "Not allowed to delete Order \"k\"; the write was undone.")
    }

    @Test func `CW-4 of a field that the role does not see, whatever it holds`() throws {
        var blind = TypePlan(
            read: "TRUEPREDICATE", write: "TRUEPREDICATE", fields: FieldRights(readable: ["store", "size"], writable: ["store", "size"]),
            role: "clerk")
        func cause(_ title: String, _ plan: TypePlan) throws -> RejectionCause? {
            try Self.refusal(.update, Self.row("north", title: "t"), Self.row("north", title: title), plan: plan, named: ["title"])?.cause
        }
        #expect(try cause("guess", blind) == .fields && cause("t", blind) == .fields)
        // What is seen is no secret: nothing changes, nobody minds.
        blind.fields.readable = nil
        #expect(try cause("guess", blind) == .fields && cause("t", blind) == nil)
    }

    @Test func `CW-3 with the same words whatever rules and values are`() throws {
        let plans = [
            Self.all, TypePlan(read: "TRUEPREDICATE", write: "size > 5", insert: false, delete: false, role: "clerk"),
            TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", fields: FieldRights(writable: []), role: "clerk"),
        ]
        let reasons = try plans.flatMap { plan in
            try [Self.row("east", size: 9), Self.row("south", title: "x")].map { row in
                try Self.reason(.update, row, Self.row("north", title: "y"), plan: plan)
            }
        }
        #expect(Set(reasons) == ["Order \"k\" is outside of the current query view; the write was undone."])
    }

    @Test func `CW-5 after which the role might not write the object any more`() throws {
        let filtered = TypePlan(read: "TRUEPREDICATE", write: "size < 10", role: "clerk")
        #expect(
            try Self.reason(.update, Self.row("north", size: 5), Self.row("north", size: 50), plan: filtered)
                == "Not allowed to write Order \"k\"; the write was undone.")
    }

    @Test func `CW-6 that changes the indexed queryable field`() throws {
        #expect(
            try Self.reason(.update, Self.row("north"), Self.row("south"), view: "store IN {'north', 'south'}")
                == "Not allowed to change the indexed queryable field store of Order \"k\"; the write was undone.")
    }

    @Test(
        arguments: [
            (PropertyType.int, Value.int(-7), "-7"), (.string, .string("k"), "\"k\""),
            (.objectId, .objectId(ObjectIdentifierBytes(high: 1, low: 2)), "ObjectID(\"000000000000000100000002\")"),
            (.uuid, .uuid(UUIDBytes(high: 1, low: 2)), "UUID(\"00000000-0000-0001-0000-000000000002\")"),
        ])
    func `with the key as its type is written`(type: PropertyType, key: Value, text: String) throws {
        let reason = try Self.reason(.insert, nil, Self.row("south", key: key), type: Self.order(key: type), key: key)
        #expect(reason?.hasPrefix("Order \(text) is outside") == true, "\(reason ?? "")")
    }
}
