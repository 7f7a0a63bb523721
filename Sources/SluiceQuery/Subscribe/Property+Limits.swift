package import SluiceCore

extension Property {
    /// `true` if the limit of a subscription can sort and distinguish objects by the property. It is a single value that PostgreSQL orders.
    package var ordersLimits: Bool {
        switch type {
        case .bool, .int, .float, .double, .decimal, .string, .timestamp, .objectId, .uuid: collection == .none
        case .binary, .mixed, .link, .embedded: false
        }
    }
}
