import CSluicePlugin
import SluicePluginKit
import Testing

/// Adds numbers, and knows Ann.
private final class Desk: FunctionHandler, LoginHandler {
    static let name = "Desk"
    static let version = "1"
    init(log: PluginLog) {}

    func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
        switch call.function {
        case "add": return .int(call.arguments.reduce(0) { $0 + Int64($1.number ?? 0) })
        case "who": return ["user": call.user.map { .string($0.id) } ?? .null, "as": .string(call.runAs), "id": .string(call.requestID)]
        case "fail": throw PluginError("the disk is full")
        default: throw PluginDenial("no such function")
        }
    }

    func authenticate(payload: PluginValue, requestID: String) throws -> PluginIdentity {
        guard let name = payload["name"]?.string else { throw PluginDenial("no name") }
        return PluginIdentity(id: name.lowercased(), name: name == "anon" ? nil : name)
    }
}

/// Has no hook for functions.
private final class Silent: SessionRules {
    static let name = "Silent"
    static let version = "1"
    init(log: PluginLog) {}
    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] { [:] }
}

@Suite struct `A plugin in Swift with functions` {
    private static let ann = #"{"id":"ann","type":"normal","data":{},"custom_data":{},"identities":[]}"#

    private static func input(_ function: String, _ arguments: String = "[]", user: String = "null") -> String {
        #"{"function":"\#(function)","arguments":\#(arguments),"user":\#(user),"run_as":"system","request_id":"7"}"#
    }

    @Test func `runs them by its table`() throws {
        let desk = Hosted(Desk.self)
        #expect(desk.table.abi_minor == 1)
        let hook = desk.table.call_function
        #expect(try desk.call(hook, Self.input("add", #"[1,{"$numberLong":"2"}]"#)) == (SLUICE_OK, "3"))
        #expect(try desk.call(hook, Self.input("who", user: Self.ann)) == (SLUICE_OK, #"{"user":"ann","as":"system","id":"7"}"#))
        #expect(try desk.call(hook, Self.input("who")) == (SLUICE_OK, #"{"user":null,"as":"system","id":"7"}"#))
        #expect(try desk.call(hook, Self.input("other")) == (SLUICE_DENY, "no such function"))
        #expect(try desk.call(hook, Self.input("fail")) == (SLUICE_FAILED, "the disk is full"))
    }

    @Test func `fails for input in another form`() throws {
        let desk = Hosted(Desk.self)
        for input in ["{}", "[]", "{", #"{"function":"add","arguments":[],"run_as":"system","request_id":"7"}"#] {
            #expect(try desk.call(desk.table.call_function, input).status == SLUICE_FAILED, "\(input)")
            #expect(try desk.call(desk.table.authenticate, input).status == SLUICE_FAILED, "\(input)")
        }
    }

    @Test func `identifies users by its table`() throws {
        let desk = Hosted(Desk.self)
        let hook = desk.table.authenticate
        let named = try desk.call(hook, #"{"payload":{"name":"Ann"},"request_id":"7"}"#)
        #expect(named == (SLUICE_OK, #"{"id":"ann","name":"Ann"}"#))
        #expect(try desk.call(hook, #"{"payload":{"name":"anon"},"request_id":"7"}"#) == (SLUICE_OK, #"{"id":"anon"}"#))
        #expect(try desk.call(hook, #"{"payload":{},"request_id":"7"}"#) == (SLUICE_DENY, "no name"))
    }

    @Test func `runs them in a test`() throws {
        let desk = try TestedPlugin(Desk.self)
        #expect(try desk.callFunction(PluginFunctionCall("add", arguments: [1, 2])) == 3)
        let asked = try desk.callFunction(PluginFunctionCall("who", user: PluginUser(id: "ann"), requestID: "9"))
        #expect(asked == ["user": "ann", "as": "ann", "id": "9"])
        #expect(throws: PluginDenial("no such function")) { try desk.callFunction(PluginFunctionCall("other")) }
        #expect(throws: PluginError.self) { try desk.callFunction(PluginFunctionCall("fail")) }
        #expect(try desk.authenticate(payload: ["name": "Ann"]) == PluginIdentity(id: "ann", name: "Ann"))
        #expect(throws: PluginDenial("no name")) { try desk.authenticate(payload: [:]) }
        let silent = try TestedPlugin(Silent.self)
        #expect(throws: PluginError.self) { try silent.callFunction(PluginFunctionCall("add")) }
        #expect(throws: PluginError.self) { try silent.authenticate(payload: [:]) }
    }

    @Test func `without them has no such hooks`() {
        let silent = Hosted(Silent.self)
        #expect(silent.table.open_session != nil && silent.table.call_function == nil && silent.table.authenticate == nil)
    }

    /// A table of version 1.0 has 120 bytes. The memory behind it is the host's.
    @Test func `loads in an older host without them`() {
        let desk = Hosted(Desk.self, size: 120)
        #expect(desk.status == SLUICE_OK && desk.table.configure != nil && desk.table.user_changed == nil)
        withUnsafeBytes(of: desk.table) { bytes in #expect(bytes[120...].allSatisfy { $0 == 0x55 }) }
    }
}
