import SluiceCore
import SluicePorts
import SluiceQuery
import Testing

@testable import SluicePipeline

/// The bound form of the rules' answer.
struct SessionPermissionsTests {
    private static let types = ["Order", "Note", "Price"].map { name in
        ObjectType(name: name, properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "size", type: .int)])
    }
    private static let schema = AppSchema(version: 1, schema: Schema(types), fields: QueryableFields(), isDevelopment: false)
    private static let plan = SessionPlan(types: [
        "Order": TypePlan(read: "size > 1", write: "size > 2", role: "clerk"),
        "Note": TypePlan(read: "secret == 1", write: "size.x == 1", role: "clerk"), "Gone": .open,
    ])

    @Test func `predicates are bound to their class, and a class without rules is denied`() throws {
        let permissions = SessionPermissions(Self.plan, schema: Self.schema)
        let (order, price) = (Self.types[0], Self.types[2])
        #expect(try permissions.read(order).canonicalText == "size > 1")
        #expect(try permissions.write(order).canonicalText == "size > 2")
        #expect(try permissions.read(price) == .false(price))
        #expect(try permissions.write(price) == .false(price))
        #expect(permissions["Price"] == .denied && permissions["Order"].role == "clerk")
    }

    @Test func `a faulty rule denies its own class only, and its text is for operators`() throws {
        let permissions = SessionPermissions(Self.plan, schema: Self.schema)
        let read = try #require(#expect(throws: SluiceError.self) { try permissions.read(Self.types[1]) })
        #expect(read.code == .queryUnknownProperty && !read.message.contains("secret"))
        #expect(read.operatorText.contains("secret") == true)
        let write = try #require(#expect(throws: SluiceError.self) { try permissions.write(Self.types[1]) })
        #expect(write.code == .queryTypeMismatch)
    }

    @Test func `rights to insert are bound with the permissions, and only for asymmetric classes`() throws {
        let classes = ["Reading", "Alarm", "Trace"].map { name in
            ObjectType(
                name: name, kind: .asymmetric,
                properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "size", type: .int)])
        }
        let schema = AppSchema(version: 1, schema: Schema(Self.types + classes), fields: QueryableFields(), isDevelopment: false)
        let plan = SessionPlan(types: [
            "Reading": TypePlan(read: "FALSEPREDICATE", write: "size > 2", role: "clerk"),
            "Alarm": TypePlan(read: "FALSEPREDICATE", write: "secret == 1", role: "clerk"), "Order": .open,
        ])
        let permissions = SessionPermissions(plan, schema: schema)
        let reading = try #require(permissions.ingest("Reading"))
        #expect(reading.mayInsert && reading.refusal(of: ["size": .int(3)], key: .int(1)) == nil)
        #expect(reading.refusal(of: ["size": .int(2)], key: .int(1))?.rule == "role clerk, write, not met: size > 2")
        // A faulty rule and a class without rules deny every object of their class.
        #expect(permissions.ingest("Alarm")?.mayInsert == false && permissions.ingest("Alarm")?.unusable != nil)
        #expect(permissions.ingest("Trace")?.mayInsert == false && permissions.ingest("Trace")?.unusable == nil)
        #expect(permissions.ingest("Order") == nil && permissions.ingest("Nowhere") == nil)
    }
}
