"""The controlled evaluation: frozen query, answer and judge over memories that different Writers wrote (Table 3, 22, Fig. 6)."""
