import SluiceCore

/// The choice of an endpoint among the subprotocols that a client offers.
package struct SubprotocolChoice: Sendable {
    package enum Outcome: Sendable {
        /// One of the offered names. The 101 response names it.
        case accept(String)
        /// The response instead of an upgrade.
        case refuse(ErrorResponse)
    }

    /// The names for the advice to a client that offers none, such as `sluice.v1`.
    package let advised: String
    private let choose: @Sendable (_ offered: [String], _ request: UpgradeRequest) -> Outcome

    /// - Parameter choose: Receives the offered names in order, without repetitions removed. Called on an event loop; it must not block.
    package init(advised: String, choose: @escaping @Sendable (_ offered: [String], _ request: UpgradeRequest) -> Outcome) {
        (self.advised, self.choose) = (advised, choose)
    }

    /// Returns the choice of one name. A request without it is refused with `wrongProtocolVersion`.
    package static func only(_ name: String) -> SubprotocolChoice {
        SubprotocolChoice(advised: name) { offered, _ in
            if offered.contains(name) { return .accept(name) }
            let others = offered.joined(separator: ", ")
            return .refuse(
                ErrorResponse(
                    SluiceError(
                        .wrongProtocolVersion,
                        "The subprotocols offered (\(others.isEmpty ? "none" : others)) do not include \(name).",
                        fix: "Send the header Sec-WebSocket-Protocol: \(name).")))
        }
    }

    /// Returns the chosen name.
    ///
    /// - Throws: The refusal; `internalError` for a name that the client did not offer. Clients may end their process at such a response.
    func name(for request: UpgradeRequest) throws(ErrorResponse) -> String {
        let offered = request.list("Sec-WebSocket-Protocol")
        switch choose(offered, request) {
        case .refuse(let response): throw response
        case .accept(let name):
            guard offered.contains(name) else {
                throw ErrorResponse(SluiceError(.internalError, "The endpoint chose the subprotocol \(name), which was not offered."))
            }
            return name
        }
    }
}
