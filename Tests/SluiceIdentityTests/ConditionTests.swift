import SluiceCore
import SluiceIdentity
import SluiceValues
import Testing

@Suite struct `A condition of an export` {
    private static let user: JSON = [
        "id": "u1", "type": "normal", "level": 7, "big": ["$numberLong": "9007199254740993"], "teams": ["red", "blue"],
        "oid": ["$oid": "0123456789ABCDEF01234567"], "none": .null, "deep": [["a": 1], ["a": 2]],
    ]

    private static func truth(_ text: String) throws -> Bool {
        let condition = try Condition(try JSON.parse(text))
        return condition.holds { name in
            let path = name.split(separator: ".")
            return path.first == "%%user" ? user.value(at: path.dropFirst()) : nil
        }
    }

    @Test(arguments: [
        "{}", "true", #""%%true""#, #"{"%%user.id": "u1"}"#, #"{"%%user.id": {"$ne": "u2"}}"#, #"{"%%user.level": {"$numberInt": "7"}}"#,
        #"{"%%user.level": 7.0}"#, #"{"%%user.level": {"$gt": 6.5, "$lte": 7}}"#, #"{"%%user.big": {"$gt": 9007199254740992}}"#,
        #"{"%%user.teams": "red"}"#, #"{"%%user.teams": {"$in": ["red", "green"]}}"#, #"{"%%user.id": {"%in": ["u1"]}}"#,
        #"{"%%user.id": {"$nin": []}}"#, #"{"%%user.oid": {"$oid": "0123456789abcdef01234567"}}"#, #"{"%%user.x": {"$exists": false}}"#,
        #"{"%%user.x": null}"#, #"{"%%user.none": {"$exists": true}}"#, #"{"%%user.deep.a": 2}"#, #"{"%%user.deep.1.a": 2}"#,
        #"{"$or": [{"%%user.id": "u2"}, {"%%user.type": "normal"}]}"#, #"{"%not": {"%%user.id": "u2"}}"#,
        #"{"%and": [{"%%user.id": {"$gte": "u0", "$lt": "u10"}}]}"#, #"{"%%user.id": "%%user.id"}"#,
        #"{"%%user.id": {"$not": {"$eq": "u2"}}}"#, #"{"$nor": [{"%%user.id": "u2"}, false]}"#,
    ])
    func `holds`(text: String) throws { #expect(try Self.truth(text), "\(text)") }

    @Test(arguments: [
        "false", #""%%false""#, #"{"%%user.id": "u2"}"#, #"{"%%user.id": "u1", "%%user.type": "server"}"#, #"{"%%user.level": "7"}"#,
        #"{"%%user.x": "u1"}"#, #"{"%%user.level": {"$gt": 7}}"#, #"{"%%user.big": 9007199254740992}"#, #"{"%%user.x": "%%user.y"}"#,
        #"{"%%user.id": {"$in": []}}"#, #"{"$or": []}"#,
        // Values without an order: neither the comparison nor its negation holds.
        #"{"%%user.x": {"$lt": 5}}"#, #"{"$not": {"%%user.x": {"$lt": 5}}}"#, #"{"$nor": [{"%%user.id": {"$gt": 5}}]}"#,
        #"{"%%user.x": {"$not": {"$gt": "a"}}}"#,
    ])
    func `does not hold`(text: String) throws { #expect(try !Self.truth(text), "\(text)") }

    @Test(arguments: [
        "1", "null", #""%%user.id""#, #"{"%function": {"name": "mayCall"}}"#, #"{"%%user.id": {"%function": {"name": "f"}}}"#,
        #"{"%%true": {"%function": {"name": "f"}}}"#, #"{"%%user.id": {"$regex": "^u"}}"#, #"{"%%user.id": {"$in": "u1"}}"#,
        #"{"%%user.id": {"%stringToOid": "0"}}"#, #"{"%%user.x": {"$exists": 1}}"#, #"{"$and": {}}"#, #"{"$where": "1"}"#,
        #"{"%%user.id": ["%%user.id"]}"#, #"{"%%user.x": {"$eq": {"a": {"$gt": 1}}}}"#,
    ])
    func `with another part is not understood, and never evaluated in part`(text: String) throws {
        let json = try JSON.parse(text)
        #expect(throws: Condition.Unsupported.self) { try Condition(json) }
    }

    @Test func `names its values`() throws {
        let condition = try Condition(try JSON.parse(#"{"$or": [{"a.b": 1}, {"$not": {"c": "%%user.id"}}, {"d": {"$exists": true}}]}"#))
        #expect(condition.names == ["a.b", "c", "%%user.id", "d"])
    }
}
